import type { AddressInfo } from 'node:net'
import type { Belfry, Logger } from '@belfry/engine'
import type { App } from './app.ts'
import { createApp } from './create-app.ts'

export interface ServerOptions {
  /** The engine once it has started; the server is there before it, to say that it is waiting. */
  belfry: () => Belfry | null
  /** May do everything, for any tenant. Null: only the keys that the database knows are valid. */
  adminKey: string | null
  /** All addresses of the machine unless given. */
  host?: string
  /** 0 picks a free one. */
  port: number
  logger?: Logger
  /** A request that has not arrived whole by then is cut off; 30 s unless given. */
  requestTimeoutMs?: number
  /** A node without the role `api` says only how it is. */
  serves?: 'everything' | 'health'
}

export interface Server {
  port: number
  /** Takes no new requests and waits for those under way. */
  stop(): Promise<void>
}

export async function startServer({ belfry, host, port, ...options }: ServerOptions): Promise<Server> {
  const app = await createApp({ ...options, service: () => belfry() })
  await listen(app, host, port)
  return { port: (app.server.address() as AddressInfo).port, stop: () => app.close() }
}

/** Both IP versions where the machine has them; some containers have no IPv6 at all. */
async function listen(app: App, host: string | undefined, port: number): Promise<void> {
  if (host !== undefined) {
    await app.listen({ host, port })
    return
  }
  try {
    await app.listen({ host: '::', port })
  } catch (error) {
    if (!['EAFNOSUPPORT', 'EADDRNOTAVAIL'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    await app.listen({ host: '0.0.0.0', port })
  }
}
