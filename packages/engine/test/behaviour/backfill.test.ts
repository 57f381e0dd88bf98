import { expect, test } from 'vitest'
import { at, HOUR, held, MINUTE, record, START, startKit } from './kit.ts'

const leave = { running: 'leave' } as const
const EVERY_TEN = { cron: '*/10 * * * *', queue: 'reports', payload: 1 } as const
const minutes = (...list: number[]): Date[] => list.map((minute) => at(minute * MINUTE))
const nominals = (seen: { nominalAt: Date }[]): Date[] => seen.map(({ nominalAt }) => nominalAt)
/** Every so many minutes in [from, to), counted by hand. */
const each = (step: number, from: number, to: number): Date[] =>
  minutes(...Array.from({ length: (to - from) / step }, (_, i) => from + i * step))

async function setup(options: Parameters<typeof startKit>[0] = {}) {
  const t = await startKit(options)
  const tables = async () => ({
    backfills: await t.query('select * from backfills'),
    runs: await t.query('select * from runs'),
    made: await t.query('select * from backfill_runs'),
    timers: await t.query('select * from timers'),
    changes: await t.query('select action from job_changes'),
  })
  return { ...t, tables, get: async (id: string) => t.kit.backfills.get(id) }
}

test('a backfill runs every time of the schedule from its beginning up to, and without, its end', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create(EVERY_TEN)
  const range = { from: at(-60 * MINUTE), to: at(-20 * MINUTE) }
  const made = await t.kit.backfills.create(jobId, range)
  expect(made).toMatchObject({ jobId, status: 'running', ...range, position: range.from, concurrency: 1, notes: [] })
  expect(made.counts).toEqual({ total: 4, created: 0, leftOut: 0, succeeded: 0, failed: 0, canceled: 0, running: 0 })
  await t.kit.settle()
  expect(nominals(seen)).toEqual(minutes(-60, -50, -40, -30))
  expect(await t.get(made.backfillId)).toMatchObject({
    status: 'completed',
    position: range.to,
    counts: { total: 4, created: 4, leftOut: 0, succeeded: 4, failed: 0, canceled: 0, running: 0 },
    createdBy: 'library',
    createdAt: at(0),
    endedAt: at(0),
  })
  const run = await t.kit.runs.get(seen[0]?.id ?? '')
  expect(run).toMatchObject({ cause: 'backfill', status: 'succeeded', nominalAt: at(-60 * MINUTE), dueAt: at(0) })
})
