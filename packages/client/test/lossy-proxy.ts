import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Proxy {
  url: string
  /** How many answers it has swallowed. */
  readonly dropped: number
  stop(): Promise<void>
}

/**
 * Stands before a server and breaks the connection instead of passing on an answer, as often as `mayDrop` says so. By then the
 * server has done what it was asked.
 */
export async function startLossyProxy(port: number, mayDrop: (request: string) => boolean): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let dropped = 0
  const proxy = createServer((client) => {
    const server = connect(port, '127.0.0.1')
    let request = ''
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        server.destroy()
      })
    }
    client.on('data', (part) => {
      request += part.toString('latin1')
      server.write(part)
    })
    server.on('data', (part) => {
      const line = request.slice(0, request.indexOf('\r\n'))
      request = ''
      if (mayDrop(line)) {
        dropped++
        client.destroy()
      } else client.write(part)
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    get dropped() {
      return dropped
    },
    stop: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => proxy.close(() => resolve()))
    },
  }
}
