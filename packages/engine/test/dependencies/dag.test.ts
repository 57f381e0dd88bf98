import { expect, test } from 'vitest'
import type { JobOfCall } from '../../src/intake/job-input.ts'
import { record, startKit } from '../behaviour/kit.ts'

const job = (ref: string, more: Partial<JobOfCall> = {}): JobOfCall => ({ ref, queue: 'work', payload: ref, ...more })
const after = (...jobs: string[]): Pick<JobOfCall, 'after'> => ({ after: { jobs } })

async function setup() {
  const t = await startKit()
  /** What a handler does with the job of this name, if not nothing. */
  const acts = new Map<string, () => unknown>()
  const seen = await record(t.kit, 'work', (run) => acts.get(String(run.payload))?.())
  const create = async (...jobs: JobOfCall[]) => {
    const created = await t.kit.jobs.createMany(jobs)
    return Object.fromEntries(created.map((one, i) => [one.ref ?? jobs[i]?.ref ?? i, one.jobId])) as Record<
      string,
      string
    >
  }
  const status = async (jobId: string | undefined) => (await t.kit.jobs.get(jobId as string))?.status
  const runOf = async (jobId: string | undefined) => (await t.kit.runs.list({ jobId: jobId as string })).items[0]
  const fails = (name: string) =>
    acts.set(name, () => {
      throw new Error('broken')
    })
  return { ...t, acts, fails, create, status, runOf, seen: () => seen.map(({ payload }) => payload) }
}

const ONCE = { retry: { maxAttempts: 1 } }

test('a diamond runs from top to bottom, each job once', async () => {
  const t = await setup()
  const ids = await t.create(
    job('bottom', after('left', 'right')),
    job('left', after('top')),
    job('right', after('top')),
    job('top'),
  )
  expect(await t.status(ids.bottom)).toBe('active')
  expect((await t.runOf(ids.bottom))?.status).toBe('blocked')
  await t.kit.settle()
  expect(t.seen()[0]).toBe('top')
  expect(t.seen().slice(1, 3).sort()).toEqual(['left', 'right'])
  expect(t.seen().slice(3)).toEqual(['bottom'])
  expect(await t.query('select from edges')).toEqual([])
  expect(await t.query('select from outbox')).toEqual([])
})
