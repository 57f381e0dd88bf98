import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

/** The connection ended before a whole answer had come. */
export class Cut extends Error {}

/**
 * A client that sends exactly the bytes it is given, also those that no HTTP library would send, over one connection
 * that stays open for as long as the server leaves it open.
 */
export class RawClient {
  readonly #port: number
  #socket: Socket | null = null
  #received: Buffer = Buffer.alloc(0)
  #waiting: { head: boolean; resolve(answer: RawAnswer): void; reject(error: Error): void } | null = null

  constructor(port: number) {
    this.#port = port
  }

  /** `head`: the answer has no body, whatever its headers say. */
  async send(parts: string | Buffer | Iterable<Buffer>, { head = false } = {}): Promise<RawAnswer> {
    const socket = this.#socket ?? this.#connect()
    const answered = new Promise<RawAnswer>((resolve, reject) => {
      this.#waiting = { head, resolve, reject }
    })
    answered.catch(() => {})
    if (typeof parts === 'string' || Buffer.isBuffer(parts)) socket.write(parts)
    else await this.#stream(socket, parts)
    return answered
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = null
  }

  #connect(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    this.#socket = socket
    this.#received = Buffer.alloc(0)
    socket.on('data', (bytes: Buffer) => {
      this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
      this.#read()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      if (this.#socket !== socket) return
      this.#socket = null
      this.#waiting?.reject(new Cut('the server closed the connection'))
      this.#waiting = null
    })
    return socket
  }

  /** Stops as soon as the server answers or hangs up. */
  async #stream(socket: Socket, parts: Iterable<Buffer>): Promise<void> {
    for (const part of parts) {
      if (this.#waiting === null || socket.destroyed) return
      if (socket.write(part)) continue
      await new Promise<void>((go) => {
        const on = () => {
          for (const name of ['drain', 'close', 'data']) socket.off(name, on)
          go()
        }
        for (const name of ['drain', 'close', 'data']) socket.on(name, on)
      })
    }
  }

  #read(): void {
    const waiting = this.#waiting
    if (waiting === null) return
    const parsed = parseAnswer(this.#received, waiting.head)
    if (parsed === null) return
    this.#received = this.#received.subarray(parsed.end)
    // `100 Continue` only says that the answer is still to come.
    if (parsed.answer.status < 200) {
      this.#read()
      return
    }
    this.#waiting = null
    if (parsed.answer.headers.connection === 'close') this.close()
    waiting.resolve(parsed.answer)
  }
}

function parseAnswer(bytes: Buffer, head: boolean): { answer: RawAnswer; end: number } | null {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return null
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const status = Number(statusLine.split(' ')[1])
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const start = headEnd + 4
  if (head || status < 200 || status === 204 || status === 304)
    return { answer: { status, headers, body: '' }, end: start }
  if (headers['transfer-encoding'] === 'chunked') {
    const chunked = parseChunks(bytes, start)
    return chunked && { answer: { status, headers, body: chunked.body }, end: chunked.end }
  }
  const end = start + Number(headers['content-length'] ?? 0)
  return bytes.length < end ? null : { answer: { status, headers, body: bytes.toString('utf8', start, end) }, end }
}

function parseChunks(bytes: Buffer, start: number): { body: string; end: number } | null {
  const chunks: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return null
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const end = lineEnd + 2 + size + 2
    if (bytes.length < end) return null
    if (size === 0) return { body: Buffer.concat(chunks).toString('utf8'), end }
    chunks.push(bytes.subarray(lineEnd + 2, end - 2))
    at = end
  }
}
