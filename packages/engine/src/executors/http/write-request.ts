import type { Socket } from 'node:net'

export interface OutgoingRequest {
  origin: string
  path: string
  method: string
  /** Names and values in turn. */
  headers: string[]
  body: string | Buffer | null
}

/** A server may wait for the body of these, unless it is told that there is none. */
const HAVE_BODY = new Set(['POST', 'PUT', 'PATCH'])

/** Writes a request, in one piece where it can be. Names and values of headers were checked when they were made. */
export function writeRequest(socket: Socket, host: string, { method, path, headers, body }: OutgoingRequest): void {
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
  for (let i = 0; i + 1 < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  if (body === null) {
    socket.write(`${head}${HAVE_BODY.has(method) ? 'content-length: 0\r\n' : ''}\r\n`, 'latin1')
    return
  }
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  head += `content-length: ${length}\r\n\r\n`
  // As many bytes as characters: none of them is more than ASCII.
  if (length === body.length && typeof body === 'string') {
    socket.write(head + body, 'latin1')
    return
  }
  socket.cork()
  socket.write(head, 'latin1')
  socket.write(body)
  socket.uncork()
}
