import { expect, test } from 'vitest'
import { at, DAY, HOUR, MINUTE, minutes, nominals, setup, TENTHS } from './backfill-kit.ts'
import { held, record } from './kit.ts'

const leave = { running: 'leave' } as const

/** After a handler was let go its end is written first, and then there is something to do. */
async function settleTwice({ kit }: Awaited<ReturnType<typeof setup>>) {
  await kit.settle(leave)
  await kit.settle(leave)
}

/** A handler that counts how many of its calls are under way, and holds each until it is told. */
function observer() {
  const under = new Map<string, () => void>()
  const seen: string[] = []
  let most = 0
  return {
    handler: (run: { nominalAt: Date }) => {
      const nominal = run.nominalAt.toISOString()
      seen.push(nominal)
      return new Promise<void>((resolve) => {
        under.set(nominal, () => {
          under.delete(nominal)
          resolve()
        })
        most = Math.max(most, under.size)
      })
    },
    seen,
    get under() {
      return [...under.keys()]
    },
    get most() {
      return most
    },
    /** Ends those that are under way, in no particular order. */
    end: (count = Number.POSITIVE_INFINITY) => {
      for (const release of [...under.values()].reverse().slice(0, count)) release()
    },
  }
}

test('no more of its runs are alive than its concurrency says, and as many as that', async () => {
  const t = await setup()
  const work = observer()
  await t.kit.handle('reports', work.handler)
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, overlap: 'allow' })
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-HOUR), to: at(0), concurrency: 3 })
  for (let step = 0; step < 6; step++) {
    await settleTwice(t)
    expect((await t.query('select from runs')).length).toBe(Math.min(3, 6 - step))
    expect(work.under).toHaveLength(Math.min(3, 6 - step))
    work.end(1)
  }
  await settleTwice(t)
  expect(work.most).toBe(3)
  expect(new Set(work.seen).size).toBe(6)
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({ status: 'completed', counts: { succeeded: 6 } })
})

test('a run in backoff counts as alive', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'reports', (run) => (run.attempt === 1 ? Promise.reject(new Error('no')) : 1))
  const retry = { backoff: { type: 'fixed', initial: '1m', jitter: 0 } } as const
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, overlap: 'allow', retry })
  await t.kit.backfills.create(jobId, { from: at(-20 * MINUTE), to: at(0) })
  await t.kit.settle()
  expect(nominals(seen)).toEqual(minutes(-15))
  await t.kit.pass(2 * MINUTE)
  expect(nominals(seen)).toEqual(minutes(-15, -15, -5, -5))
})

test('unless runs may overlap, a scheduled and a backfilled one never do, and neither is skipped', async () => {
  const t = await setup()
  const work = observer()
  await t.kit.handle('reports', work.handler)
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, timeout: '1h' })
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-20 * MINUTE), to: at(0), concurrency: 5 })
  await t.kit.settle(leave)
  expect(work.under).toEqual([at(-15 * MINUTE).toISOString()])
  // The scheduled time finds the backfill at work: it waits, and then comes before what is left of the backfill.
  await t.kit.pass(6 * MINUTE, leave)
  expect(work.seen).toHaveLength(1)
  work.end()
  await settleTwice(t)
  expect(work.under).toEqual([at(5 * MINUTE).toISOString()])
  work.end()
  await settleTwice(t)
  expect(work.under).toEqual([at(-5 * MINUTE).toISOString()])
  work.end()
  await settleTwice(t)
  expect(work.most).toBe(1)
  expect(await t.query('select from skips')).toEqual([])
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({ status: 'completed', counts: { succeeded: 2 } })
})

test('two backfills of one job go on beside each other, and leave out what the other made', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, overlap: 'allow' })
  const one = await t.kit.backfills.create(jobId, { from: at(-HOUR), to: at(-20 * MINUTE) })
  t.kit.clock.advance(1)
  const other = await t.kit.backfills.create(jobId, { from: at(-50 * MINUTE), to: at(0) })
  await t.kit.settle()
  expect(nominals(seen).map(Number).sort()).toEqual(minutes(-55, -45, -35, -25, -15, -5).map(Number).sort())
  const counts = await Promise.all(
    [one, other].map(async (made) => (await t.kit.backfills.get(made.backfillId))?.counts),
  )
  expect(counts.map((all) => (all?.created ?? 0) + (all?.leftOut ?? 0))).toEqual([4, 5])
  expect(counts.map((all) => all?.created ?? 0).reduce((a, b) => a + b)).toBe(6)
})

test('a paused job is backfilled, and stays paused', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create(TENTHS)
  await t.kit.jobs.pause(jobId)
  await t.kit.backfills.create(jobId, { from: at(-20 * MINUTE), to: at(DAY) })
  await t.kit.pass(HOUR)
  expect(nominals(seen)).toEqual(minutes(-15, -5))
  expect(await t.kit.jobs.get(jobId)).toMatchObject({ status: 'paused' })
  // What fell into the pause is a skip once the job goes on, and then it can be filled in.
  await t.kit.jobs.resume(jobId)
  await t.kit.backfills.create(jobId, { from: at(0), to: at(DAY) })
  await t.kit.settle()
  expect(nominals(seen)).toEqual(minutes(-15, -5, 5, 15, 25, 35, 45, 55))
})

test('a job that is changed meanwhile is backfilled at its old times, as it is now', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create(TENTHS)
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-30 * MINUTE), to: at(0) })
  await t.kit.pulse()
  await t.kit.backfill()
  await t.kit.jobs.update(jobId, { cron: '0 12 * * *', payload: 2 })
  await t.kit.settle()
  expect(seen.map(({ nominalAt, payload }) => [nominalAt, payload])).toEqual(
    minutes(-25, -15, -5).map((one) => [one, 2]),
  )
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({
    status: 'completed',
    counts: { total: 3, succeeded: 3 },
  })
})

test('a job whose schedule is used up meanwhile is backfilled to the end', async () => {
  const t = await setup()
  const gate = held()
  const seen = await record(t.kit, 'reports', () => gate.gate)
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, maxRuns: 1, overlap: 'allow', timeout: '1h' })
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-30 * MINUTE), to: at(0) })
  await t.kit.pass(6 * MINUTE, leave)
  expect(await t.kit.jobs.get(jobId)).toMatchObject({ status: 'completed' })
  gate.letGo()
  await settleTwice(t)
  await t.kit.settle()
  expect(nominals(seen)).toEqual(minutes(-25, 5, -15, -5))
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({ status: 'completed', counts: { succeeded: 3 } })
})

test.each(['cancel', 'delete'] as const)('%s of the job ends its backfill as canceled', async (end) => {
  const t = await setup()
  const gate = held()
  await record(t.kit, 'reports', () => gate.gate)
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, overlap: 'allow' })
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-HOUR), to: at(0), concurrency: 2 })
  await t.kit.settle(leave)
  await (await t.kit.tenant('default')).jobs[end](jobId)
  await t.kit.settle(leave)
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({ status: 'canceled', counts: { created: 2 } })
  gate.letGo()
  await settleTwice(t)
  await t.kit.settle()
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({
    status: 'canceled',
    counts: { created: 2, running: 0 },
    endedAt: at(0),
  })
})

test('a backfill is canceled as a unit: what waits is gone, what runs is asked to stop, nothing more is made', async () => {
  const t = await setup()
  const stop = held()
  const asked: string[] = []
  const perform = (run: { id: string; signal: AbortSignal }) =>
    new Promise<void>((_, reject) => {
      run.signal.addEventListener('abort', () => asked.push(run.id))
      void stop.gate.then(() => reject(new Error('stopped')))
    })
  await t.kit.handle('reports', perform, { concurrency: 1 })
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, overlap: 'allow' })
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-HOUR), to: at(0), concurrency: 3 })
  await t.kit.settle(leave)
  const { runId } = await t.kit.jobs.trigger(jobId)
  expect(await t.query('select from runs')).toHaveLength(4)
  const canceled = await t.kit.backfills.cancel(backfillId)
  expect(canceled).toMatchObject({ status: 'canceled', endedAt: null, counts: { created: 3, canceled: 2, running: 1 } })
  expect(await t.kit.backfills.cancel(backfillId)).toEqual(canceled)
  await t.kit.settle(leave)
  expect(asked).toEqual([`${jobId}.${(Number(at(-55 * MINUTE))).toString(36)}`])
  // The trigger is none of its business.
  expect(await t.kit.runs.get(runId)).toMatchObject({ status: 'ready', cancelRequested: false })
  stop.letGo()
  await settleTwice(t)
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({
    status: 'canceled',
    position: at(-35 * MINUTE + 1),
    endedAt: at(0),
    counts: { total: 6, created: 3, leftOut: 0, canceled: 3, running: 0 },
  })
  expect(await t.query('select from backfill_runs')).toHaveLength(3)
  expect(await t.query(`select from job_changes where action = 'cancel_backfill'`)).toHaveLength(1)
  // What it had not come to can be asked for again; its canceled runs were runs, and stay what they are.
  expect(await t.kit.backfills.preview(jobId, { from: at(-HOUR), to: at(0) })).toMatchObject({ count: 3, leftOut: 3 })
})

test('one that has finished cannot be canceled any more', async () => {
  const t = await setup()
  await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create(TENTHS)
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-20 * MINUTE), to: at(0) })
  await t.kit.settle()
  await expect(t.kit.backfills.cancel(backfillId)).rejects.toMatchObject({ code: 'already_finished' })
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({ status: 'completed' })
})

test('a range in which most times have a run already is gone through at once', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create({ queue: 'reports', every: 'PT1S', startAt: at(-HOUR), overlap: 'allow' })
  await t.query(
    `insert into attempts (nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
     select n, n, $2, $1::uuid, 1, 1, 1, 1, ('x' || substr($1::text, 16, 3))::bit(12)::int, 1, 0, true, true
     from generate_series($2::timestamptz - interval '30 min', $2::timestamptz - interval '1 min', interval '1 s') n`,
    [jobId, at(0)],
  )
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-30 * MINUTE), to: at(-50_000) })
  await t.kit.settle()
  expect(nominals(seen).filter((nominal) => nominal < at(0))).toHaveLength(9)
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({
    status: 'completed',
    counts: { total: 1_750, created: 9, leftOut: 1_741 },
  })
})

test('while nothing is backfilled the backfiller sends nothing, and a backfill that waits costs one look', async () => {
  const t = await setup()
  const { jobId } = await t.kit.jobs.create(TENTHS)
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-HOUR), to: at(0) })
  await t.kit.settle()
  const before = await t.tables()
  await t.kit.settle()
  await t.kit.settle()
  // Nobody serves the queue: not even the timer's version changes.
  expect(await t.tables()).toEqual(before)
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({ status: 'running', counts: { created: 1, running: 1 } })
})
