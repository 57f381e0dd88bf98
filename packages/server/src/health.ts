import { BelfryError } from '@belfry/engine'
import type { FastifyInstance } from 'fastify'
import { sendProblem } from './problem.ts'

/** What the server asks whether the database answers. */
export interface HealthSource {
  /** Rejects when the database does not answer. */
  ping(): Promise<void>
}

/** `engine` is null while it is still starting, which it is as long as the database is away. */
export function healthRoutes(app: FastifyInstance, engine: () => HealthSource | null): void {
  app.get('/healthz', async (_request, reply) => {
    const source = engine()
    if (!source) return sendProblem(reply, new BelfryError('database_unavailable', 'waiting for the database'))
    try {
      await source.ping()
    } catch (cause) {
      return sendProblem(reply, new BelfryError('database_unavailable', 'the database does not answer', { cause }))
    }
    return { status: 'ok' }
  })
}
