import { BelfryError, type CreatedJob, type JobInput } from '@belfry/engine'
import { type Static, Type } from 'typebox'
import type { App } from '../app.ts'
import { etagOf } from '../etag.ts'
import { describedJobJson, jobJson } from '../job-json.ts'
import type { Limiter } from '../rate-limit.ts'
import { jobParams } from '../schemas/ids.ts'
import { createdJob, describedJob, job } from '../schemas/job.ts'
import { jobFilter } from '../schemas/job-filter.ts'
import { jobInput } from '../schemas/job-input.ts'
import { pageOf, pageQuery } from '../schemas/page.ts'

import { judgedBelow } from '../validation.ts'

const tags = ['Jobs']

const idempotencyHeader = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({ minLength: 1, maxLength: 257, description: 'The same as `idempotencyKey` in the body.' }),
  ),
})

/** Create and read. */
export function jobRoutes(app: App, limiter: Limiter): void {
  app.post(
    '/v1/jobs',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Create a job',
        description:
          'Answers when the job is durable, and says what its time was understood as. The same request with the same idempotency key answers 200 with the job that the first one made.',
        headers: idempotencyHeader,
        body: judgedBelow<JobInput>(jobInput),
        response: { 201: createdJob, 200: createdJob },
      },
    },
    async ({ tenant, caller, body, headers }, reply) => {
      refuseTenant(body)
      limiter.takeCreates(caller, 1, reply)
      const idempotencyKey = keyOf(headers['idempotency-key'])
      const created = await tenant.jobs.create(body, idempotencyKey === undefined ? {} : { idempotencyKey })
      reply.status(created.deduplicated ? 200 : 201).header('location', `/v1/jobs/${created.jobId}`)
      return createdJson(created)
    },
  )

  app.get(
    '/v1/jobs',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'List jobs, newest first',
        querystring: pageQuery(jobFilter),
        response: { 200: pageOf(job) },
      },
    },
    async ({ tenant, query }) => {
      const page = await tenant.jobs.list(query)
      return { ...page, items: page.items.map(jobJson) }
    },
  )

  app.get(
    '/v1/jobs/:jobId',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        summary: 'Read a job, wherever it is',
        description: 'Says also when it runs: in words, and the next times.',
        params: jobParams,
        response: { 200: describedJob },
      },
    },
    async ({ tenant, params }, reply) => {
      const found = await tenant.jobs.get(params.jobId)
      reply.header('etag', etagOf(found.version))
      return describedJobJson(found)
    },
  )
}

/** The key decides for whom a job is; a body that says otherwise is a mistake that must not pass in silence. */
export function refuseTenant(body: object, path = 'tenant'): void {
  if (!Object.hasOwn(body, 'tenant')) return
  const message = 'the API key decides the tenant; leave it away'
  throw new BelfryError('invalid_job', `${path}: ${message}`, { complaints: [{ path, message }] })
}

function createdJson({ deduplicated, ...created }: CreatedJob): Static<typeof createdJob> {
  return deduplicated ? { ...created, deduplicated } : created
}

/** The header may be written as a structured field, in quotes. */
function keyOf(header: string | string[] | undefined): string | undefined {
  if (typeof header !== 'string') return undefined
  return /^"(.*)"$/.exec(header)?.[1] ?? header
}
