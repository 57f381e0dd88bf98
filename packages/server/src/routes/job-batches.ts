import { BelfryError, type JobInput } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { refusal } from '../complaints.ts'
import type { Limiter } from '../rate-limit.ts'
import { jobId } from '../schemas/ids.ts'
import { batchInput } from '../schemas/job-input.ts'
import { judgedBelow } from '../validation.ts'
import { refuseTenant } from './jobs.ts'

const BODY_LIMIT_BYTES = 33_554_432
const MAX_JOBS = 10_000
const MAX_REF = 128

const createdJobs = Type.Object({
  jobs: Type.Array(
    Type.Object({
      ref: Type.Optional(Type.String()),
      jobId,
      deduplicated: Type.Optional(Type.Literal(true)),
      replaced: Type.Optional(Type.Literal(true)),
    }),
  ),
})

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
          'One job that cannot be understood refuses them all. Jobs that wait for others (`after`) are not supported yet.',
        body: judgedBelow<{ jobs: unknown }>(batchInput),
        response: { 201: createdJobs },
      },
    },
    async ({ tenant, caller, body }, reply) => {
      const { jobs, refs } = readBatch(body)
      limiter.takeCreates(caller, jobs.length, reply)
      const created = await tenant.jobs.createMany(jobs).catch((error: unknown) => {
        throw withinBatch(error)
      })
      reply.status(201)
      return {
        jobs: created.map((one, i) => ({
          ...(refs[i] === undefined ? {} : { ref: refs[i] }),
          jobId: one.jobId,
          ...(one.deduplicated ? { deduplicated: true as const } : {}),
          ...(one.replaced ? { replaced: true as const } : {}),
        })),
      }
    },
  )
}

/** Takes the refs out; the jobs themselves are the engine's to judge. */
function readBatch(body: { jobs: unknown }): { jobs: JobInput[]; refs: (string | undefined)[] } {
  for (const name of Object.keys(body)) if (name !== 'jobs') throw refuse(name, 'there is no such field', 'jobs')
  const { jobs: given } = body
  if (!Array.isArray(given) || given.length === 0) throw refuse('jobs', 'must be a list of jobs')
  if (given.length > MAX_JOBS) throw refuse('jobs', `must have at most ${MAX_JOBS} jobs, not ${given.length}`)
  const refs: (string | undefined)[] = []
  const seen = new Set<string>()
  const jobs = given.map((item: unknown, i) => {
    if (typeof item !== 'object' || item === null || Array.isArray(item))
      throw refuse(`jobs[${i}]`, 'must be an object')
    refuseTenant(item, `jobs[${i}].tenant`)
    if (!Object.hasOwn(item, 'ref')) {
      refs.push(undefined)
      return item as JobInput
    }
    const { ref, ...job } = item as JobInput & { ref: unknown }
    refs.push(checkedRef(ref, `jobs[${i}].ref`, seen))
    return job
  })
  return { jobs, refs }
}

function checkedRef(ref: unknown, path: string, seen: Set<string>): string {
  if (typeof ref !== 'string' || ref === '' || ref.length > MAX_REF)
    throw refuse(path, `must be a text of 1 to ${MAX_REF} characters`)
  if (seen.has(ref)) throw refuse(path, 'stands at another job of this batch already')
  seen.add(ref)
  return ref
}

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
