import { BelfryError, type JobView, type Tenant } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { jobId } from '../schemas/ids.ts'
import { jobFilter } from '../schemas/job-filter.ts'
import { nullable } from '../schemas/page.ts'

/** So many jobs are looked at in one call; the answer says where the next one goes on. */
const MAX_JOBS = 1_000
const AT_ONCE = 8

const ACTIONS = ['cancel', 'pause', 'resume', 'trigger', 'delete'] as const
type Action = (typeof ACTIONS)[number]

const actionsBody = Type.Object(
  {
    filter: Type.Object(jobFilter, {
      additionalProperties: false,
      minProperties: 1,
      description: 'Which jobs; at least one condition, so that nobody means all of them by mistake.',
    }),
    action: Type.Enum([...ACTIONS], { description: 'What to do with each.' }),
    dryRun: Type.Optional(Type.Boolean({ description: 'Only say which jobs it would be.' })),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000, description: 'For pause.' })),
    cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000 })),
  },
  { additionalProperties: false, examples: [{ filter: { queue: 'emails' }, action: 'pause', dryRun: true }] },
)

const actionsDone = Type.Object({
  count: Type.Integer({ description: 'How many jobs it was done to, or would be.' }),
  jobIds: Type.Array(jobId),
  refused: Type.Array(Type.Object({ jobId, code: Type.String(), detail: Type.String() }), {
    description: 'Those it could not be done to.',
  }),
  nextCursor: nullable(Type.String({ description: 'Send it back to go on with further jobs; null: that was all.' })),
})

export function jobActionRoutes(app: App): void {
  app.post(
    '/v1/jobs/actions',
    {
      config: { scope: 'write' },
      schema: {
        tags: ['Jobs'],
        summary: 'Do something to all jobs of a filter',
        description: `At most ${MAX_JOBS} jobs per call; each is changed by itself.`,
        body: actionsBody,
        response: { 200: actionsDone },
      },
    },
    async ({ tenant: { jobs }, body }) => {
      const { filter, action, dryRun = false, reason, cursor } = body
      const page = await jobs.list({ ...filter, limit: MAX_JOBS, ...(cursor === undefined ? {} : { cursor }) })
      const perform = (job: JobView): Promise<unknown> =>
        dryRun ? Promise.resolve() : act(jobs, action, job.jobId, reason)
      const refused = await refusals(page.items, perform)
      const refusedIds = new Set(refused.map((one) => one.jobId))
      const jobIds = page.items.map((job) => job.jobId).filter((id) => !refusedIds.has(id))
      return { count: jobIds.length, jobIds, refused, nextCursor: page.nextCursor }
    },
  )
}

function act(jobs: Tenant['jobs'], action: Action, id: string, reason: string | undefined): Promise<unknown> {
  switch (action) {
    case 'cancel':
      return jobs.cancel(id)
    case 'pause':
      return jobs.pause(id, reason === undefined ? {} : { reason })
    case 'resume':
      return jobs.resume(id)
    case 'trigger':
      return jobs.trigger(id)
    case 'delete':
      return jobs.delete(id)
  }
}

/** A job that cannot be changed, because it ended meanwhile, does not hold up the others. */
async function refusals(
  items: readonly JobView[],
  perform: (job: JobView) => Promise<unknown>,
): Promise<{ jobId: string; code: string; detail: string }[]> {
  const refused: { jobId: string; code: string; detail: string }[] = []
  const rest = items.values()
  const workers = Array.from({ length: AT_ONCE }, async () => {
    for (const job of rest) {
      try {
        await perform(job)
      } catch (error) {
        if (!(error instanceof BelfryError) || error.status >= 500) throw error
        refused.push({ jobId: job.jobId, code: error.code, detail: error.message })
      }
    }
  })
  await Promise.all(workers)
  return refused
}
