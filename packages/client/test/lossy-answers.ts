import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

export interface LostAnswer {
  path: string
  body: string
}

export interface LossyServer {
  url: string
  readonly answered: number
  /** Those that the server gave and nobody heard. */
  readonly lost: readonly LostAnswer[]
}

/**
 * Stands before a server and passes everything on. Of every so many answers it reads one to its end, when the server has
 * done all that it was asked, and then cuts the connection instead. A caller that hangs up is hung up on the other side.
 */
export async function startLosingAnswers(port: number, every: number): Promise<LossyServer> {
  const lost: LostAnswer[] = []
  let answered = 0
  const agent = new Agent({ keepAlive: true, maxSockets: 200 })
  const proxy = createServer(async (asked, reply) => {
    const { method, url = '', headers } = asked
    const call = request({ port, host: '127.0.0.1', agent, method, path: url, headers })
    reply.on('close', () => {
      if (!reply.writableEnded) call.destroy()
    })
    try {
      call.end(await buffer(asked))
      const [answer] = (await once(call, 'response')) as [IncomingMessage]
      const body = await buffer(answer)
      if (++answered % every === 0) {
        lost.push({ path: url, body: body.toString() })
        asked.socket.destroy()
      } else {
        const { 'transfer-encoding': _, connection: __, ...kept } = answer.headers
        reply.writeHead(answer.statusCode ?? 502, { ...kept, 'content-length': body.length }).end(body)
      }
    } catch {
      asked.socket.destroy()
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
    agent.destroy()
  })
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    get answered() {
      return answered
    },
    lost,
  }
}
