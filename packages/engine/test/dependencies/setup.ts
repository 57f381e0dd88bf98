import type { JobOfCall } from '../../src/intake/job-input.ts'
import { record, startKit } from '../behaviour/kit.ts'

export const job = (ref: string, more: Partial<JobOfCall> = {}): JobOfCall => ({
  ref,
  queue: 'work',
  payload: ref,
  retry: { maxAttempts: 1 },
  ...more,
})
export const after = (...jobs: string[]): Pick<JobOfCall, 'after'> => ({ after: { jobs } })

/** A kit whose queue `work` does what `acts` says of a job's payload, and nothing for all others. */
export async function setup() {
  const t = await startKit()
  const acts = new Map<string, (run: Parameters<Parameters<typeof record>[2] & object>[0]) => unknown>()
  const seen = await record(t.kit, 'work', (run) => acts.get(String(run.payload))?.(run))
  const create = async (...jobs: JobOfCall[]): Promise<Record<string, string>> => {
    const created = await t.kit.jobs.createMany(jobs)
    return Object.fromEntries(created.map(({ jobId, ref }, i) => [ref ?? String(i), jobId]))
  }
  const status = async (jobId: string | undefined) => (await t.kit.jobs.get(String(jobId)))?.status
  const lastRun = async (jobId: string | undefined) => {
    const [run] = (await t.kit.runs.list({ jobId: String(jobId) })).items
    return t.kit.runs.get(run?.id ?? '')
  }
  const fails = (...names: string[]) => {
    for (const name of names)
      acts.set(name, () => {
        throw new Error('broken')
      })
  }
  const works = (...names: string[]) => {
    for (const name of names) acts.delete(name)
  }
  return { ...t, acts, fails, works, create, status, lastRun, seen: () => seen.map(({ payload }) => payload) }
}
