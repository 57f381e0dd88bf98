import { Type } from 'typebox'
import type { App } from '../app.ts'
import { noContent, pageOf, pageQuery } from '../schemas/page.ts'
import { queueName } from '../schemas/queue.ts'
import { worker, workerId, workerInput, workerStatus } from '../schemas/worker.ts'

const tags = ['Workers']
const params = Type.Object({ workerId }, { additionalProperties: false })

export function workerRoutes(app: App): void {
  app.get(
    '/v1/workers',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'List workers by their ids',
        querystring: pageQuery({ queue: Type.Optional(queueName), status: Type.Optional(workerStatus) }),
        response: { 200: pageOf(worker) },
      },
    },
    ({ tenant, query }) => tenant.workers.list(query),
  )

  app.get(
    '/v1/workers/:workerId',
    { config: { scope: 'read' }, schema: { tags, summary: 'Get a worker', params, response: { 200: worker } } },
    ({ tenant, params }) => tenant.workers.get(params.workerId),
  )

  app.put(
    '/v1/workers/:workerId',
    {
      config: { scope: 'worker' },
      schema: {
        tags,
        summary: 'Register a worker, or ask one to drain',
        description:
          'Fields that are left out stay as they are. Registering is optional: a worker that calls is known without it. To set `draining` alone does not count as having seen it.',
        params,
        body: workerInput,
        response: { 200: worker },
      },
    },
    ({ tenant, params, body }) => tenant.workers.put(params.workerId, body),
  )

  app.delete(
    '/v1/workers/:workerId',
    {
      config: { scope: 'worker' },
      schema: {
        tags,
        summary: 'Forget a worker; what it has leased stays leased',
        params,
        response: { 204: noContent },
      },
    },
    async ({ tenant, params }, reply) => {
      await tenant.workers.delete(params.workerId)
      return reply.status(204).send()
    },
  )
}
