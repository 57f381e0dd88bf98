import type { Socket } from 'node:net'

export interface OutgoingRequest {
  origin: string
  path: string
  method: string
  /** Lines, each with its end. */
  headers: string
  body: string | Buffer | null
}

/** A server may wait for the body of these, unless it is told that there is none. */
const HAVE_BODY = new Set(['POST', 'PUT', 'PATCH'])

/** Writes a request, in one piece where it can be. Names and values of headers were checked when they were made. */
export function writeRequest(socket: Socket, host: string, { method, path, headers, body }: OutgoingRequest): void {
  const begin = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n${headers}`
  if (body === null) {
    socket.write(`${begin}${HAVE_BODY.has(method) ? 'content-length: 0\r\n' : ''}\r\n`, 'latin1')
    return
  }
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const head = `${begin}content-length: ${length}\r\n\r\n`
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
