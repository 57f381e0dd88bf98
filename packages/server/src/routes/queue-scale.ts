import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { readDuration } from '../duration.ts'
import { queueName } from '../schemas/queue.ts'
import { scale } from '../schemas/worker.ts'

const DEFAULT_TARGET_LAG = 'PT10S'
const MAX_TARGET_LAG_MS = 30 * 86_400_000
const DEFAULT_PER_WORKER = 10
const MAX_PER_WORKER = 1_000_000

export function queueScaleRoutes(app: App): void {
  app.get(
    '/v1/queues/:queue/scale',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['Queues'],
        summary: 'How many workers a queue needs now',
        description:
          'For autoscalers: `workers` is the number to have. It keeps up with arrivals and works the backlog off within `targetLag`, and is 0 when nothing waits, runs or arrives.',
        params: Type.Object({ queue: queueName }, { additionalProperties: false }),
        querystring: Type.Object(
          {
            targetLag: Type.Optional(
              Type.String({
                maxLength: 100,
                description: 'In what time the backlog shall be worked off; default 10 s.',
                examples: ['PT10S', '1m'],
              }),
            ),
            perWorker: Type.Optional(
              Type.Integer({
                minimum: 1,
                maximum: MAX_PER_WORKER,
                description: 'How many runs one worker performs at once; default 10.',
              }),
            ),
          },
          { additionalProperties: false },
        ),
        response: { 200: scale },
      },
    },
    ({ tenant, params, query }) => {
      const targetLagMs = readDuration('targetLag', query.targetLag ?? DEFAULT_TARGET_LAG, MAX_TARGET_LAG_MS)
      if (targetLagMs < 1) throw tooShort()
      return tenant.workers.scale(params.queue, { targetLagMs, perWorker: query.perWorker ?? DEFAULT_PER_WORKER })
    },
  )
}

function tooShort(): BelfryError {
  const message = 'must be longer than nothing'
  return new BelfryError('invalid_request', `targetLag: ${message}`, { complaints: [{ path: 'targetLag', message }] })
}
