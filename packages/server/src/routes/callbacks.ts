import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import type { Service } from '../service.ts'

const MAX_ERROR_LENGTH = 10_000

const body = Type.Object(
  {
    status: Type.Enum(['succeeded', 'failed']),
    result: Type.Optional(Type.Unknown({ description: 'Any JSON; kept with the run.' })),
    error: Type.Optional(Type.String({ maxLength: MAX_ERROR_LENGTH })),
  },
  { additionalProperties: false, examples: [{ status: 'succeeded', result: { rows: 42 } }] },
)

/** No key: the token in the address was given to the target, and names the one attempt that it may finish. */
export function callbackRoutes(app: App, service: () => Service | null): void {
  app.post(
    '/v1/callbacks/:token',
    {
      config: { scope: null },
      schema: {
        tags: ['Callbacks'],
        summary: 'Finish a run whose target answered 202 with Belfry-Callback: wait',
        params: Type.Object({ token: Type.String({ maxLength: 2_000 }) }, { additionalProperties: false }),
        body,
        response: { 200: Type.Object({ status: Type.String() }) },
      },
    },
    async ({ params, body }) => {
      const engine = service()
      if (engine === null)
        throw new BelfryError('database_unavailable', 'this node is starting and waits for its database')
      await engine.completeCallback(params.token, body)
      return { status: body.status }
    },
  )
}
