import { Type } from 'typebox'
import type { App } from '../app.ts'
import { instant, noContent, nullable } from '../schemas/page.ts'

const tags = ['Pauses']
const MAX_REASON = 1_000

const pause = Type.Object(
  {
    id: nullable(
      Type.String({ description: 'For `DELETE /v1/pauses/{id}`; null for a queue, which is resumed by its name.' }),
    ),
    kind: Type.String({ description: 'tenant, key, origin or queue.' }),
    name: nullable(Type.String({ description: 'The key, origin or queue; null for the tenant.' })),
    pausedAt: instant('Since when nothing of it is started.'),
    pausedBy: nullable(
      Type.String({
        description:
          "Who paused it: an API key's prefix, or a program; `admin` is an operator of the installation, and `admin, bk_…` an operator and the tenant.",
      }),
    ),
    reason: nullable(Type.String()),
  },
  { title: 'Pause', additionalProperties: true },
)

const pauseInput = Type.Object(
  {
    tenant: Type.Optional(Type.Literal(true, { description: 'All that the tenant has.' })),
    key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: 'Runs of jobs that name this key in `concurrency` or `rateLimit`.',
        examples: ['customer-42'],
      }),
    ),
    origin: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 300,
        description: 'Calls to this scheme, host and port.',
        examples: ['https://api.example.com'],
      }),
    ),
    reason: Type.Optional(Type.String({ maxLength: MAX_REASON, examples: ['the partner asked us to stop'] })),
  },
  {
    title: 'PauseInput',
    additionalProperties: false,
    description: 'Exactly one of `tenant`, `key` and `origin`.',
    'x-elsewhere': {
      queue: 'a queue is paused by POST /v1/queues/{queue}/pause',
      job: 'a job is paused by POST /v1/jobs/{jobId}/pause',
    },
    examples: [
      { origin: 'https://api.example.com', reason: 'the partner asked us to stop' },
      { tenant: true, reason: 'the invoice is not paid' },
    ],
  },
)

export function pauseRoutes(app: App): void {
  app.get(
    '/v1/pauses',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'List what is paused: the tenant, keys, origins and queues',
        description: 'Paused jobs are among the jobs: `GET /v1/jobs?status=paused`.',
        response: { 200: Type.Object({ items: Type.Array(pause) }) },
      },
    },
    async ({ tenant }) => ({ items: await tenant.pauses.list() }),
  )

  app.post(
    '/v1/pauses',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Start nothing of a tenant, a key or an origin until the pause ends',
        description:
          'Effective on all nodes within a second. Runs under way go on; times still come, and their runs wait, uncounted, without holding up others. What is paused already is answered as it is, with 200; if an operator and the tenant have both paused it, `pausedBy` names both.',
        body: pauseInput,
        response: { 200: pause, 201: pause },
      },
    },
    async ({ tenant, body }, reply) => {
      const { pause, created } = await tenant.pauses.create(body)
      return reply.status(created ? 201 : 200).send(pause)
    },
  )

  app.delete(
    '/v1/pauses/:id',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'End a pause: its runs come back one after the other',
        description:
          "An operator's pause is for an operator to end (403 `forbidden` otherwise); if the tenant has paused the same, that pause stands until it is ended too.",
        params: Type.Object(
          { id: Type.String({ maxLength: 64, examples: ['019a8d3e-1f2a-7000-8abc-0123456789ab'] }) },
          { additionalProperties: false },
        ),
        response: { 204: noContent },
      },
    },
    async ({ tenant, params }, reply) => {
      await tenant.pauses.end(params.id)
      return reply.status(204).send()
    },
  )
}
