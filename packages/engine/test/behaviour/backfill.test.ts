import { expect, test } from 'vitest'
import { at, DAY, HOUR, MINUTE, minutes, nominals, setup, TENTHS } from './backfill-kit.ts'
import { record, START } from './kit.ts'

test('a backfill runs every time of the schedule from its beginning up to, and without, its end', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create(TENTHS)
  const range = { from: at(-55 * MINUTE), to: at(-15 * MINUTE) }
  const made = await t.kit.backfills.create(jobId, range)
  expect(made).toMatchObject({ jobId, status: 'running', ...range, position: range.from, concurrency: 1, notes: [] })
  expect(made.counts).toEqual({ total: 4, created: 0, leftOut: 0, succeeded: 0, failed: 0, canceled: 0, running: 0 })
  await t.kit.settle()
  expect(nominals(seen)).toEqual(minutes(-55, -45, -35, -25))
  expect(await t.kit.backfills.get(made.backfillId)).toEqual({
    ...{ backfillId: made.backfillId, jobId, ...range, position: range.to, concurrency: 1, status: 'completed' },
    counts: { total: 4, created: 4, leftOut: 0, succeeded: 4, failed: 0, canceled: 0, running: 0 },
    ...{ createdBy: 'library', createdAt: at(0), endedAt: at(0) },
  })
  const { backfillId } = made
  const run = { cause: 'backfill', status: 'succeeded', nominalAt: at(-55 * MINUTE), dueAt: at(0), backfillId }
  expect(await t.kit.runs.get(seen[0]?.id ?? '')).toMatchObject(run)
  expect(await (await t.kit.tenant('default')).runs.get(seen[0]?.id ?? '')).toMatchObject(run)
  expect((await t.kit.runs.list({ jobId })).items.map(({ cause }) => cause)).toEqual(Array(4).fill('backfill'))
})

test('times that have a run, an attempt or a dead letter are left out; skipped ones are run', async () => {
  const t = await setup()
  let works = false
  const seen = await record(t.kit, 'reports', () => (works ? 1 : Promise.reject(new Error('no'))))
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, retry: { maxAttempts: 1 }, catchUp: { policy: 'none' } })
  // 5 dies, 15 dies and its letter is dropped, 25 succeeds, 35–55 are skipped, 65 is alive.
  await t.kit.pass(15 * MINUTE)
  await (await t.kit.tenant('default')).deadLetters.delete(seen[1]?.id ?? '')
  works = true
  await t.kit.pass(10 * MINUTE)
  t.kit.clock.advance(39 * MINUTE)
  await t.kit.settle()
  t.kit.clock.advance(MINUTE)
  await t.kit.readTimers()
  await t.query(`update queues set paused_at = now() where name = 'reports'`)
  await t.kit.settle()
  expect(await t.query('select from runs')).toHaveLength(1)
  const range = { from: at(-5 * MINUTE), to: at(2 * HOUR) }
  expect(await t.kit.backfills.preview(jobId, range)).toMatchObject({
    count: 4,
    leftOut: 4,
    times: { first: minutes(-5, 35, 45, 55), last: minutes(-5, 35, 45, 55) },
  })
  const { backfillId } = await t.kit.backfills.create(jobId, range)
  await t.query('update queues set paused_at = null')
  await t.kit.settle()
  expect(nominals(seen)).toEqual(minutes(5, 15, 25, 65, -5, 35, 45, 55))
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({
    status: 'completed',
    to: at(75 * MINUTE),
    counts: { total: 8, created: 4, leftOut: 4, succeeded: 4 },
  })
  // Once more there is nothing left to do.
  expect(await t.kit.backfills.preview(jobId, range)).toMatchObject({ count: 0, leftOut: 8 })
  await expect(t.kit.backfills.create(jobId, range)).rejects.toMatchObject({ code: 'invalid_argument' })
})

test('a dry run says what would be done, and changes nothing', async () => {
  const t = await setup()
  const { jobId } = await t.kit.jobs.create(TENTHS)
  const before = await t.tables()
  expect(await t.kit.backfills.preview(jobId, { from: at(-2 * HOUR), to: at(0), concurrency: 7 })).toEqual({
    count: 12,
    leftOut: 0,
    times: { first: minutes(-115, -105, -95, -85, -75), last: minutes(-45, -35, -25, -15, -5) },
    from: at(-2 * HOUR),
    to: at(0),
    notes: [],
  })
  await t.kit.settle()
  expect(await t.tables()).toEqual(before)
})

test('a backfill ends where the schedule has still to decide, begins where the schedule does, and says so', async () => {
  const t = await setup()
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, startAt: at(-HOUR) })
  const cut = await t.kit.backfills.create(jobId, { from: at(-DAY), to: at(DAY) })
  expect(cut).toMatchObject({ from: at(-HOUR), to: at(5 * MINUTE), counts: { total: 6 } })
  expect(cut.notes).toEqual([
    'The schedule begins at 2025-12-31T23:00:00.000Z: there is nothing before it.',
    'Cut at 2026-01-01T00:05:00.000Z: that time and those after it are still for the schedule itself to run or to skip.',
  ])
  for (const range of [
    { from: at(HOUR), to: at(DAY) },
    { from: at(-DAY), to: at(-2 * HOUR) },
    { from: at(-4 * MINUTE), to: at(4 * MINUTE) },
  ]) {
    expect(await t.kit.backfills.preview(jobId, range)).toMatchObject({ count: 0, leftOut: 0 })
    await expect(t.kit.backfills.create(jobId, range)).rejects.toThrow(
      /there is nothing to run. .*no time in this range/,
    )
  }
  const every = await t.kit.jobs.create({ queue: 'reports', every: 'PT7M', startAt: at(-70 * MINUTE) })
  expect(await t.kit.backfills.preview(every.jobId, { from: at(-DAY), to: at(0) })).toMatchObject({
    count: 10,
    from: at(-70 * MINUTE),
    times: { first: minutes(-70, -63, -56, -49, -42) },
  })
})

test('many times must be confirmed by their count, and very many are refused', async () => {
  const t = await setup()
  const { jobId } = await t.kit.jobs.create({ queue: 'reports', every: 'PT1S', startAt: at(-2 * DAY) })
  const range = { from: at(-3 * HOUR), to: at(-1) }
  expect((await t.kit.backfills.preview(jobId, range)).count).toBe(10_800)
  await expect(t.kit.backfills.create(jobId, range)).rejects.toThrow('confirmCount: must be 10800')
  await expect(t.kit.backfills.create(jobId, { ...range, confirmCount: 10_801 })).rejects.toThrow(/it would be 10,800/)
  await expect(t.kit.backfills.preview(jobId, { from: at(-2 * DAY), to: at(-1) })).rejects.toThrow(/more than 100,000/)
  expect(await t.kit.backfills.create(jobId, { ...range, confirmCount: 10_800 })).toMatchObject({
    counts: { total: 10_800 },
  })
  // A count that is given counts, however few they are.
  const few = { from: at(-MINUTE), to: at(-1) }
  await expect(t.kit.backfills.create(jobId, { ...few, confirmCount: 59 })).rejects.toThrow(/it would be 60 runs/)
})

test.each<[object, string]>([
  [{}, 'from'],
  [{ from: at(-HOUR) }, 'to'],
  [{ from: 'yesterday', to: at(0) }, 'from'],
  [{ from: at(-HOUR).getTime(), to: at(0) }, 'from'],
  [{ from: at(0), to: at(0) }, 'to'],
  [{ from: at(0), to: at(-HOUR) }, 'to'],
  [{ from: at(-HOUR), to: at(0), concurrency: 0 }, 'concurrency'],
  [{ from: at(-HOUR), to: at(0), concurrency: 101 }, 'concurrency'],
  [{ from: at(-HOUR), to: at(0), concurency: 2 }, 'concurency'],
  [{ from: at(-HOUR), to: at(0), confirmCount: '6' }, 'confirmCount'],
])('%j is refused, and names %s', async (input, path) => {
  const t = await setup()
  const { jobId } = await t.kit.jobs.create(TENTHS)
  const before = await t.tables()
  const error = await t.kit.backfills.create(jobId, input as never).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'invalid_argument' })
  expect((error as { complaints: { path: string }[] }).complaints.map((one) => one.path)).toContain(path)
  expect(await t.tables()).toEqual(before)
})

test('only a job with a schedule and a future can be backfilled', async () => {
  const t = await setup()
  const range = { from: at(-HOUR), to: at(0) }
  const refused = (jobId: string) => t.kit.backfills.create(jobId, range).catch((error: { code: string }) => error.code)
  const oneOff = await t.kit.jobs.create({ queue: 'reports', delay: '1h' })
  const canceled = await t.kit.jobs.create(TENTHS)
  await t.kit.jobs.cancel(canceled.jobId)
  const completed = await t.kit.jobs.create({ ...TENTHS, maxRuns: 1 })
  await t.kit.pass(6 * MINUTE)
  expect(await refused(oneOff.jobId)).toBe('invalid_argument')
  expect(await refused(canceled.jobId)).toBe('already_finished')
  expect(await refused(completed.jobId)).toBe('already_finished')
  expect(await refused(oneOff.jobId.replace(/.$/, (last) => (last === '0' ? '1' : '0')))).toBe('not_found')
  expect(await refused('nonsense')).toBe('invalid_argument')
  await expect(t.kit.backfills.cancel('nonsense')).rejects.toMatchObject({ code: 'not_found' })
  expect(await t.kit.backfills.get('nonsense')).toBeNull()
})

test('deadlines and ages count from now on, not from the time that has passed', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'reports', (run) => (run.attempt < 3 ? Promise.reject(new Error('no')) : 1))
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, startDeadline: '1m', retry: { maxAge: '10m' } })
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-15 * MINUTE), to: at(0) })
  await t.kit.pass(2 * MINUTE)
  expect(seen.map(({ nominalAt, attempt }) => [nominalAt, attempt])).toEqual(
    [-15, -15, -15, -5, -5, -5].map((minute, i) => [at(minute * MINUTE), (i % 3) + 1]),
  )
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({ status: 'completed', counts: { succeeded: 2 } })
})

test('what failed, and what somebody canceled, is counted as such', async () => {
  const t = await setup()
  await t.kit.handle('reports', () => Promise.reject(new Error('no')))
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, overlap: 'allow', retry: { maxAttempts: 1 } })
  const { backfillId } = await t.kit.backfills.create(jobId, { from: at(-HOUR), to: at(0), concurrency: 2 })
  await t.kit.pulse()
  await t.kit.backfill()
  const [one] = (await t.kit.runs.list({ jobId })).items
  await t.kit.runs.cancel(one?.id ?? '')
  await t.kit.settle()
  expect(await t.kit.backfills.get(backfillId)).toMatchObject({
    status: 'completed',
    counts: { total: 6, created: 6, leftOut: 0, succeeded: 0, failed: 5, canceled: 1, running: 0 },
  })
})

test('backfills of a job are listed, latest first, and who asked for them is on record', async () => {
  const t = await setup()
  const { jobId } = await t.kit.jobs.create({ ...TENTHS, overlap: 'allow' })
  const ids: string[] = []
  for (const hour of [1, 2, 3]) {
    t.kit.clock.advance(1)
    ids.unshift(
      (await t.kit.backfills.create(jobId, { from: at(-hour * HOUR), to: at(-hour * HOUR + 20 * MINUTE) })).backfillId,
    )
  }
  const first = await t.kit.backfills.list(jobId, { limit: 2 })
  expect(first.items.map((one) => one.backfillId)).toEqual(ids.slice(0, 2))
  const rest = await t.kit.backfills.list(jobId, { limit: 2, cursor: first.nextCursor ?? '' })
  expect(rest.items.map((one) => one.backfillId)).toEqual(ids.slice(2))
  expect(rest.nextCursor).toBeNull()
  const tenant = await t.kit.tenant('default', 'ada')
  await tenant.backfills.cancel(ids[0] ?? '')
  const changes = (await tenant.jobs.changes(jobId)).items.map(({ action, actor, after }) => ({ action, actor, after }))
  expect(changes.slice(1)).toEqual([
    ...[1, 2, 3].map((hour, i) => ({
      action: 'backfill',
      actor: 'library',
      after: {
        backfillId: ids[2 - i],
        from: at(-hour * HOUR).toISOString(),
        to: at(-hour * HOUR + 20 * MINUTE).toISOString(),
        count: 2,
        concurrency: 1,
      },
    })),
    { action: 'cancel_backfill', actor: 'ada', after: { backfillId: ids[0] } },
  ])
})

test('a backfill is forgotten with the history of its runs', async () => {
  const t = await setup()
  await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create(TENTHS)
  const old = await t.kit.backfills.create(jobId, { from: at(-HOUR), to: at(-30 * MINUTE) })
  await t.kit.settle()
  const open = await t.kit.backfills.create(jobId, { from: at(-30 * MINUTE), to: at(0) })
  t.kit.clock.advance(399 * DAY)
  await t.kit.purge()
  expect(await t.query('select from backfill_runs')).toHaveLength(3)
  t.kit.clock.advance(2 * DAY)
  await t.kit.purge()
  expect(await t.query('select from backfill_runs')).toHaveLength(0)
  expect(await t.kit.backfills.get(old.backfillId)).toBeNull()
  expect(await t.kit.backfills.get(open.backfillId)).toMatchObject({ status: 'running' })
})

test('a purge that fails keeps none of the others from their turn', async () => {
  const t = await setup()
  await t.query(`insert into workers (started_at, seen_at, tenant_id, shard, id) values ($1, $1, 1, 0, 'long gone')`, [
    new Date(START - 30 * DAY),
  ])
  await t.query('alter table run_payloads rename to away')
  await expect(t.kit.purge()).rejects.toThrow()
  await t.query('alter table away rename to run_payloads')
  expect(await t.query('select from workers')).toEqual([])
})
