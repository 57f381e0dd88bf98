import { Type } from 'typebox'
import type { App } from '../app.ts'
import type { Limiter } from '../rate-limit.ts'
import { jobParams } from '../schemas/ids.ts'
import { optionalBody } from '../validation.ts'

const status = Type.Object({ status: Type.String() })

export function jobRoutes(app: App, _limiter: Limiter): void {
  app.post(
    '/v1/jobs/:jobId/pause',
    {
      config: { scope: 'write' },
      schema: {
        tags: ['Jobs'],
        summary: 'Make no new runs until resumed',
        params: jobParams,
        body: optionalBody(
          Type.Object(
            { reason: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000 })) },
            { additionalProperties: false },
          ),
        ),
        response: { 200: status },
      },
    },
    ({ tenant, params, body }) => tenant.jobs.pause(params.jobId, body),
  )
}
