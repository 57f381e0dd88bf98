import { Type } from 'typebox'
import type { App } from '../app.ts'
import { limitFields } from '../schemas/limits.ts'
import { noContent, pageOf, pageQuery } from '../schemas/page.ts'
import { pauseBody, queue, queueKind, queueName, queueSettings } from '../schemas/queue.ts'
import { optionalBody } from '../validation.ts'

const tags = ['Queues']
const params = Type.Object({ queue: queueName }, { additionalProperties: false })

export function queueRoutes(app: App): void {
  app.get(
    '/v1/queues',
    {
      config: { scope: 'read' },
      schema: { tags, summary: 'List queues', querystring: pageQuery({}), response: { 200: pageOf(queue) } },
    },
    ({ tenant, query }) => tenant.queues.list(query),
  )

  app.get(
    '/v1/queues/:queue',
    { config: { scope: 'read' }, schema: { tags, summary: 'Get a queue', params, response: { 200: queue } } },
    ({ tenant, params }) => tenant.queues.get(params.queue),
  )

  app.put(
    '/v1/queues/:queue',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Make a queue, say of which kind it is, or limit it',
        description:
          'Limits count from the answer on, on all nodes and workers together: what is under way stays, and nothing more is started until there is room. One that is left out stays as it is; null takes it away. Only an operator may limit a shared queue.',
        params,
        body: Type.Object(
          { kind: Type.Optional(queueKind), ...limitFields, ...queueSettings },
          {
            additionalProperties: false,
            examples: [
              { maxRunning: 20, rateLimit: { limit: 100, period: 'PT1S' } },
              { maxDepth: 10_000, maxAge: 'PT5M' },
            ],
          },
        ),
        response: { 200: queue },
      },
    },
    async ({ tenant, params, body }) => {
      await tenant.queues.put(params.queue, body)
      return tenant.queues.get(params.queue)
    },
  )

  app.delete(
    '/v1/queues/:queue',
    {
      config: { scope: 'write' },
      schema: { tags, summary: 'Drop a queue that is empty', params, response: { 204: noContent } },
    },
    async ({ tenant, params }, reply) => {
      await tenant.queues.delete(params.queue)
      return reply.status(204).send()
    },
  )

  app.post(
    '/v1/queues/:queue/pause',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Start nothing of a queue until resumed',
        params,
        body: optionalBody(pauseBody),
        response: { 200: queue },
      },
    },
    async ({ tenant, params, body }) => {
      await tenant.queues.pause(params.queue, body ?? {})
      return tenant.queues.get(params.queue)
    },
  )

  app.post(
    '/v1/queues/:queue/resume',
    {
      config: { scope: 'write' },
      schema: { tags, summary: 'Go on with a paused queue', params, response: { 200: queue } },
    },
    async ({ tenant, params }) => {
      await tenant.queues.resume(params.queue)
      return tenant.queues.get(params.queue)
    },
  )

  app.post(
    '/v1/queues/:queue/purge',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Cancel all runs of a queue that nobody performs yet',
        params,
        response: { 200: Type.Object({ purged: Type.Integer() }) },
      },
    },
    ({ tenant, params }) => tenant.queues.purge(params.queue),
  )
}
