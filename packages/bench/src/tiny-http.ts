import { connect, type Socket } from 'node:net'

/** Just enough HTTP/1.1 to be nobody's bottleneck: messages with a content-length, one after the other on a connection. */

export interface Message {
  /** `POST /path HTTP/1.1` or `HTTP/1.1 201 Created` */
  firstLine: string
  body: string
}

const HEAD_END = '\r\n\r\n'
/** As everybody here writes it. */
const LENGTH = '\r\ncontent-length: '

/** Calls `onMessage` for each whole message that arrives. */
export function readMessages(socket: Socket, onMessage: (message: Message) => void): void {
  let rest = ''
  socket.on('data', (chunk: Buffer) => {
    const text = chunk.toString('latin1')
    rest = rest === '' ? text : rest + text
    for (;;) {
      const headEnd = rest.indexOf(HEAD_END)
      if (headEnd < 0) return
      const lengthAt = rest.indexOf(LENGTH)
      const length = lengthAt < 0 || lengthAt > headEnd ? 0 : Number.parseInt(rest.slice(lengthAt + LENGTH.length), 10)
      const end = headEnd + HEAD_END.length + length
      if (rest.length < end) return
      const message = {
        firstLine: rest.slice(0, rest.indexOf('\r\n')),
        body: rest.slice(headEnd + HEAD_END.length, end),
      }
      rest = rest.length === end ? '' : rest.slice(end)
      onMessage(message)
    }
  })
}

/** Writes requests that differ in their bodies alone. */
export function requestWriter(method: string, path: string, headers: Record<string, string>): (body: string) => string {
  const lines = Object.entries({ host: 'bench', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `${method} ${path} HTTP/1.1\r\n${lines.join('')}content-length: `
  return (body) => `${head}${Buffer.byteLength(body)}${HEAD_END}${body}`
}

export const requestText = (method: string, path: string, headers: Record<string, string>, body: string): string =>
  requestWriter(method, path, headers)(body)

export const EMPTY_ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'

export const statusOf = ({ firstLine }: Message): number => Number(firstLine.split(' ')[1])

/** A connection that carries one request at a time and stays open. */
export interface Connection {
  send(request: string): Promise<Message>
  close(): void
}

export async function openConnection(port: number): Promise<Connection> {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const made = connect(port, '127.0.0.1', () => resolve(made))
    made.once('error', reject)
  })
  socket.setNoDelay(true)
  let settle: { resolve(message: Message): void; reject(error: Error): void } | null = null
  readMessages(socket, (message) => settle?.resolve(message))
  socket.on('close', () => settle?.reject(new Error('the connection was closed')))
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        settle = { resolve, reject }
        socket.write(request)
      }),
    close: () => {
      settle = null
      socket.destroy()
    },
  }
}
