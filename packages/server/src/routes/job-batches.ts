import { BelfryError, type Created, type Tenant } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { refusal } from '../complaints.ts'
import type { Limiter } from '../rate-limit.ts'
import { batch, batchId } from '../schemas/batch.ts'
import { jobId } from '../schemas/ids.ts'
import { batchInput } from '../schemas/job-input.ts'
import { judgedBelow } from '../validation.ts'
import { refuseTenant } from './jobs.ts'

const BODY_LIMIT_BYTES = 33_554_432
const MAX_JOBS = 10_000

const createdJobs = Type.Object({
  jobs: Type.Array(
    Type.Object({
      ref: Type.Optional(Type.String()),
      jobId,
      deduplicated: Type.Optional(Type.Literal(true)),
      replaced: Type.Optional(Type.Literal(true)),
    }),
  ),
  batchId: Type.Optional(batchId),
})

const params = Type.Object({ batchId }, { additionalProperties: false })

/** Many at once, all or nothing. */
export function jobBatchRoutes(app: App, limiter: Limiter): void {
  app.post(
    '/v1/jobs/batch',
    {
      config: { scope: 'write' },
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags: ['Jobs'],
        summary: 'Create up to 10,000 jobs, all or none',
        description:
          'One job that cannot be understood refuses them all. A job may wait for others of the call by their `ref` (`after`), which makes a graph of jobs; a cycle is refused with its path. With `batch` they are one group: `batchId` in the answer says which, and `GET /v1/batches/{batchId}` how far it is.',
        body: judgedBelow<{ jobs: unknown; batch?: unknown }>(batchInput),
        response: { 201: createdJobs },
      },
    },
    async ({ tenant, caller, body }, reply) => {
      const { jobs, batch } = readBatch(body)
      limiter.takeCreates(caller, jobs.length + (batch?.onFinish === undefined ? 0 : 1), reply)
      const made = await (batch === undefined ? together(tenant, jobs) : tenant.batches.create(jobs, batch)).catch(
        (error: unknown) => {
          throw withinBatch(error)
        },
      )
      reply.status(201)
      return { ...made, jobs: made.jobs.map(createdJson) }
    },
  )

  app.get(
    '/v1/batches/:batchId',
    {
      config: { scope: 'read' },
      schema: {
        tags: ['Jobs'],
        summary: 'How many jobs of a batch are open, and how the others ended',
        description:
          'A job that is retried is open again, and so is its batch; the job that runs at its end does so once.',
        params,
        response: { 200: batch },
      },
    },
    ({ tenant, params }) => tenant.batches.get(params.batchId),
  )
}

const together = async (tenant: Tenant, jobs: readonly unknown[]): Promise<{ jobs: Created[] }> => ({
  jobs: await tenant.jobs.createMany(jobs),
})

const createdJson = ({ ref, jobId, deduplicated, replaced }: Created) => ({
  ...(ref === undefined ? {} : { ref }),
  jobId,
  ...(deduplicated ? { deduplicated: true as const } : {}),
  ...(replaced ? { replaced: true as const } : {}),
})

/** The jobs themselves are the engine's to judge. */
function readBatch(body: { jobs: unknown; batch?: unknown }): {
  jobs: unknown[]
  batch: { name?: string; onFinish?: unknown } | undefined
} {
  for (const name of Object.keys(body))
    if (name !== 'jobs' && name !== 'batch') throw refuse(name, 'there is no such field', 'jobs')
  const { jobs, batch } = body
  if (!Array.isArray(jobs) || jobs.length === 0) throw refuse('jobs', `must be a list of 1 to ${MAX_JOBS} jobs`)
  if (jobs.length > MAX_JOBS) throw refuse('jobs', `must have at most ${MAX_JOBS} jobs, not ${jobs.length}`)
  jobs.forEach((item: unknown, i) => {
    if (!isObject(item)) throw refuse(`jobs[${i}]`, 'must be an object')
    refuseTenant(item, `jobs[${i}].tenant`)
  })
  if (batch === undefined) return { jobs, batch }
  if (!isObject(batch)) throw refuse('batch', 'must be an object')
  if ('onFinish' in batch && isObject(batch.onFinish)) refuseTenant(batch.onFinish, 'batch.onFinish.tenant')
  return { jobs, batch }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const refuse = (path: string, message: string, suggestion?: string): BelfryError =>
  refusal([suggestion === undefined ? { path, message } : { path, message, suggestion }])

/** The engine counts the jobs of a call; here they stand in a field. */
function withinBatch(error: unknown): unknown {
  if (!(error instanceof BelfryError)) return error
  const complaints = error.complaints.map((one) => ({
    ...one,
    path: one.path.startsWith('[') ? `jobs${one.path}` : one.path,
  }))
  return new BelfryError(error.code, error.message, { complaints, cause: error })
}
