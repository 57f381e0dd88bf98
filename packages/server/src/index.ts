import type { AddressInfo } from 'node:net'
import { BelfryError } from '@belfry/engine'
import { fastify } from 'fastify'
import { type HealthSource, healthRoutes } from './health.ts'
import { sendProblem } from './problem.ts'

export type { HealthSource } from './health.ts'

export interface ServerOptions {
  /** The engine once it has started; the server is there before it, to say that it is waiting. */
  engine: () => HealthSource | null
  /** All addresses of the machine unless given. */
  host?: string
  /** 0 picks a free one. */
  port: number
}

export interface Server {
  port: number
  /** Takes no new requests and waits for those under way. */
  stop(): Promise<void>
}

export async function startServer({ engine, host, port }: ServerOptions): Promise<Server> {
  const app = fastify({ logger: false, return503OnClosing: true })
  app.setNotFoundHandler((request, reply) =>
    sendProblem(reply, new BelfryError('not_found', `there is no ${request.method} ${request.url.split('?')[0]}`)),
  )
  healthRoutes(app, engine)
  await listen(app, host, port)
  return { port: (app.server.address() as AddressInfo).port, stop: () => app.close() }
}

/** Both IP versions where the machine has them; some containers have no IPv6 at all. */
async function listen(app: ReturnType<typeof fastify>, host: string | undefined, port: number): Promise<void> {
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
