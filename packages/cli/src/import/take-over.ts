import type { Api, Page } from '../api/api.ts'
import { Problem } from '../api/problem.ts'
import type { Job } from '../api/shapes.ts'
import type { Entry, Plan } from './entry.ts'

export interface Preview {
  understoodAs: string
  times: { utc: string; local: string; dst?: 'gap' | 'repeat' }[]
}

/** An entry with what a node made of it. */
export interface Reported extends Entry {
  preview?: Preview
  /** Only with --apply. */
  done?: 'created' | 'changed' | 'unchanged'
}

type JobPlan = Extract<Plan, { kind: 'job' }>

const SCHEDULE_FIELDS = ['cron', 'every', 'timezone', 'startAt', 'endAt', 'runAt']
const PREVIEWED_TIMES = 3
/** What an answer says about the one entry that was asked about. Others would meet every entry. */
const OF_THE_ENTRY: ReadonlySet<number> = new Set([400, 409, 412, 413, 422])

/** Says what each entry would mean. What the node does not understand becomes a refusal, of that entry alone. */
export async function previewEntries(api: Api, entries: readonly Entry[]): Promise<Reported[]> {
  const reported: Reported[] = []
  for (const entry of entries) {
    const { plan } = entry
    reported.push(
      plan.kind === 'refused'
        ? entry
        : await orRefused(entry, async () => ({ ...entry, preview: await preview(api, plan) })),
    )
  }
  return reported
}

/**
 * Makes the jobs be as the file says; doing it twice changes nothing. Once the node does not answer, or lets nobody in, the
 * rest is not tried: what was done until then must still be told.
 */
export async function applyEntries(api: Api, entries: readonly Reported[]): Promise<Reported[]> {
  const applied: Reported[] = []
  let stopped: string | undefined
  for (const entry of entries) {
    const { plan } = entry
    if (plan.kind === 'refused') applied.push(entry)
    else if (stopped !== undefined) applied.push(refused(entry, `not tried any more, after ${stopped}`))
    else {
      try {
        applied.push(await orRefused(entry, async () => ({ ...entry, done: await apply(api, plan) })))
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        applied.push(refused(entry, error.message))
        stopped = entry.place
      }
    }
  }
  return applied
}

function preview(api: Api, { job }: JobPlan): Promise<Preview> {
  const schedule = Object.fromEntries(
    SCHEDULE_FIELDS.filter((field) => field in job).map((field) => [field, job[field]]),
  )
  return api.post('/v1/schedules/preview', { ...schedule, count: PREVIEWED_TIMES })
}

async function apply(api: Api, { name, job, isSuspended }: JobPlan): Promise<'created' | 'changed' | 'unchanged'> {
  const before = await jobOf(api, name)
  const path = `/v1/jobs/by-name/${encodeURIComponent(name)}`
  const put: { jobId: string; created: boolean; version: number } = await api.ask('PUT', path, { body: job })
  if (isSuspended && (put.created || before?.status !== 'paused'))
    await api.post(`/v1/jobs/${put.jobId}/pause`, { reason: 'it was suspended where it came from' })
  if (put.created) return 'created'
  return put.version === before?.version ? 'unchanged' : 'changed'
}

async function jobOf(api: Api, name: string): Promise<Job | undefined> {
  const { items }: Page<Job> = await api.get('/v1/jobs', { name })
  return items.find(({ status }) => status === 'active' || status === 'paused')
}

async function orRefused(entry: Entry, action: () => Promise<Reported>): Promise<Reported> {
  try {
    return await action()
  } catch (error) {
    if (!(error instanceof Problem) || !OF_THE_ENTRY.has(error.status)) throw error
    return refused(entry, error.message)
  }
}

const refused = (entry: Entry, reason: string): Reported => ({ ...entry, plan: { kind: 'refused', reason } })
