import { connect, createServer, type Socket } from 'node:net'
import { inject, onTestFinished } from 'vitest'

/**
 * Stands between a node and PostgreSQL. It can lose the answer to one statement, found by its name, together with the
 * connection: the server did the work, and the node never hears of it.
 */
export async function startLossyProxy() {
  const { host, port, ...rest } = inject('postgres')
  const upstream = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
  const sockets = new Set<Socket>()
  let losing: { name: string; when: 'answered' | 'sent'; lost: () => void } | null = null
  let stalled: (() => void)[] | null = null

  const server = createServer((client) => {
    const database = connect(upstream)
    let mute: { lost: () => void } | null = null
    for (const socket of [client, database]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (chunk) => {
      if (losing && chunk.includes(losing.name)) {
        const { when, lost } = losing
        losing = null
        stalled = []
        database.write(chunk)
        if (when === 'answered') mute = { lost }
        else {
          client.destroy()
          lost()
        }
      } else if (stalled) stalled.push(() => database.write(chunk))
      else database.write(chunk)
    })
    database.on('data', (chunk) => {
      if (!mute) client.write(chunk)
      else {
        client.destroy()
        mute.lost()
      }
    })
    // A client that is gone is not passed on: the server finds out when it answers, as behind a dead network.
    database.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  return {
    connection: { ...rest, host: '127.0.0.1', port: address.port },
    /**
     * Loses the connection of the next statement with this name: after it was `answered`, or as soon as it was `sent`.
     * Whatever is sent afterwards waits for `goOn`. Resolves when the connection is lost.
     */
    lose: (name: string, when: 'answered' | 'sent') =>
      new Promise<void>((lost) => {
        losing = { name, when, lost }
      }),
    goOn: () => {
      const waiting = stalled ?? []
      stalled = null
      for (const write of waiting) write()
    },
  }
}
