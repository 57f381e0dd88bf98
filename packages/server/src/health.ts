import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from './app.ts'
import type { Service } from './service.ts'

const readiness = Type.Object({
  ready: Type.Boolean(),
  checks: Type.Array(Type.Object({ name: Type.String(), ok: Type.Boolean(), detail: Type.Optional(Type.String()) })),
})

/** `service` is null while the engine is still starting, which it is as long as the database is away. */
export function healthRoutes(app: App, service: () => Service | null): void {
  app.get(
    '/healthz',
    {
      config: { scope: null },
      schema: {
        tags: ['Health'],
        summary: 'Whether the process answers, and its database takes writes',
        response: { 200: Type.Object({ status: Type.Literal('ok') }) },
      },
    },
    async () => {
      const engine = service()
      if (engine === null) throw new BelfryError('database_unavailable', 'waiting for the database')
      await engine.ping().catch((cause: unknown) => {
        if (cause instanceof BelfryError) throw cause
        throw new BelfryError('database_unavailable', 'the database does not answer', { cause })
      })
      return { status: 'ok' as const }
    },
  )
  app.get(
    '/readyz',
    {
      config: { scope: null },
      schema: {
        tags: ['Health'],
        summary: 'Whether this node can do its work, and what stands in its way',
        response: { 200: readiness, 503: readiness },
      },
    },
    async (_request, reply) => {
      const engine = service()
      if (engine === null) throw new BelfryError('database_unavailable', 'waiting for the database')
      const found = await engine.readiness()
      return reply.status(found.ready ? 200 : 503).send(found)
    },
  )
}
