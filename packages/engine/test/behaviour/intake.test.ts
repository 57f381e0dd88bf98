import { expect, test } from 'vitest'
import { at, HOUR, MINUTE, record, startKit } from './kit.ts'

const TABLES = ['jobs', 'specs', 'timers', 'runs', 'keys', 'attempts', 'skips']

/** How many rows each table has that a create may write. */
const counts = async (query: <Row extends { n: number }>(text: string) => Promise<Row[]>) =>
  Promise.all(TABLES.map(async (table) => (await query(`select count(*)::int as n from ${table}`))[0]?.n))

test('a name is taken while its job has a future, and free after it was canceled', async () => {
  const { kit } = await startKit()
  const first = await kit.jobs.create({ name: 'digest', queue: 'reports', cron: '0 9 * * *', payload: 1 })
  const again = () => kit.jobs.create({ name: 'digest', queue: 'reports', every: 'PT1H', payload: 2 })
  await expect(again()).rejects.toMatchObject({
    code: 'name_taken',
    status: 409,
    complaints: [{ path: 'name' }],
  })
  await kit.jobs.cancel(first.jobId)
  const second = await again()
  expect(second.jobId).not.toBe(first.jobId)
  await expect(again()).rejects.toMatchObject({ code: 'name_taken' })
})

test('the name of a one-off is free again when it has finished', async () => {
  const { kit } = await startKit()
  await record(kit, 'emails')
  const create = () => kit.jobs.create({ name: 'welcome', queue: 'emails', payload: 1, delay: '1m' })
  await create()
  await expect(create()).rejects.toMatchObject({ code: 'name_taken' })
  await kit.pass(2 * MINUTE)
  await expect(create()).resolves.toMatchObject({ deduplicated: false })
})

test('the same request with the same idempotency key is the same job, and runs once', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails')
  const request = { queue: 'emails', payload: { to: 'ada', cc: ['bob'] }, idempotencyKey: 'welcome-ada' }
  const first = await kit.jobs.create(request)
  await kit.settle()
  const second = await kit.jobs.create({ ...request, payload: { cc: ['bob'], to: 'ada' } })
  await kit.settle()
  expect(second).toMatchObject({ jobId: first.jobId, deduplicated: true })
  expect(seen).toHaveLength(1)
})

test('another request with the same idempotency key is refused, and nothing is stored', async () => {
  const { kit, query } = await startKit()
  await kit.jobs.create({ queue: 'emails', payload: 1, idempotencyKey: 'k' })
  const before = await counts(query)
  await expect(kit.jobs.create({ queue: 'emails', payload: 2, idempotencyKey: 'k' })).rejects.toMatchObject({
    code: 'idempotency_mismatch',
    status: 422,
  })
  expect(await counts(query)).toEqual(before)
})

test('an idempotency key is free again after its time', async () => {
  const { kit } = await startKit()
  const request = { queue: 'emails', payload: 1, idempotencyKey: 'k', idempotencyTtl: '1h' }
  const first = await kit.jobs.create(request)
  kit.clock.advance(HOUR - 1)
  expect(await kit.jobs.create(request)).toMatchObject({ jobId: first.jobId, deduplicated: true })
  kit.clock.advance(1)
  expect(await kit.jobs.create(request)).toMatchObject({ deduplicated: false })
})

test("a create in a caller's transaction is not seen before its commit, and runs after it", async () => {
  const { kit, pool } = await startKit()
  const seen = await record(kit, 'emails')
  const client = await pool.connect()
  await client.query('begin')
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 }, { tx: client })
  const cron = await kit.jobs.create(
    { queue: 'emails', every: 'PT20S', startAt: at(20_000), payload: 2 },
    { tx: client },
  )
  await kit.settle()
  expect(await kit.jobs.get(jobId)).toBeNull()
  expect(await kit.jobs.get(cron.jobId)).toBeNull()
  kit.clock.advance(30_000)
  await client.query('commit')
  client.release()
  await kit.settle()
  expect(seen.map(({ payload, nominalAt }) => [payload, nominalAt]).sort()).toEqual([
    [1, at(0)],
    [2, at(20_000)],
  ])
})

test("a create in a caller's transaction is gone when that rolls back", async () => {
  const { kit, pool, query } = await startKit()
  const seen = await record(kit, 'emails')
  const before = await counts(query)
  const client = await pool.connect()
  await client.query('begin')
  await kit.jobs.createMany(
    [
      { queue: 'emails', payload: 1 },
      { name: 'digest', queue: 'emails', cron: '* * * * *', payload: 2, idempotencyKey: 'k' },
    ],
    { tx: client },
  )
  await client.query('rollback')
  client.release()
  await kit.pass(5 * MINUTE)
  expect(seen).toEqual([])
  expect(await counts(query)).toEqual(before)
})

test('createMany makes all jobs or none', async () => {
  const { kit, query } = await startKit()
  await kit.jobs.create({ name: 'taken', queue: 'emails', cron: '0 12 * * *', payload: 1 })
  const before = await counts(query)
  const good = { queue: 'emails', payload: 1 }
  const later = { ...good, delay: '1h' }
  await expect(kit.jobs.createMany([good, later, { ...good, delay: 'soon' }])).rejects.toMatchObject({
    code: 'invalid_job',
    complaints: [{ path: '[2].delay' }],
  })
  await expect(kit.jobs.createMany([good, later, { ...later, name: 'taken' }])).rejects.toMatchObject({
    code: 'name_taken',
  })
  expect(await counts(query)).toEqual(before)
  const made = await kit.jobs.createMany([good, later, { ...good, every: 'PT1H' }])
  expect(made).toHaveLength(3)
  expect(new Set(made.map(({ jobId }) => jobId)).size).toBe(3)
  const seen = await record(kit, 'emails')
  await kit.pass(MINUTE)
  expect(seen).toHaveLength(2)
})

test('a job created by SQL is planned and runs under the id that SQL answered', async () => {
  const { kit, pool } = await startKit({ start: new Date() })
  const seen = await record(kit, 'emails')
  const create = async (definition: object): Promise<string> =>
    (await pool.query('select create_job($1::jsonb) as id', [JSON.stringify(definition)])).rows[0].id
  const oneOff = await create({ queue: 'emails', payload: { to: 'ada' } })
  const recurring = await create({ queue: 'emails', every: 'PT1H', payload: { to: 'bob' }, name: 'hourly' })
  await kit.pass(3 * HOUR + MINUTE)
  expect(seen.filter(({ id }) => id.startsWith(oneOff))).toMatchObject([{ payload: { to: 'ada' } }])
  expect(seen.filter(({ id }) => id.startsWith(recurring)).length).toBeGreaterThanOrEqual(3)
  expect(await kit.jobs.get(oneOff)).toMatchObject({ status: 'succeeded' })
  expect(await kit.jobs.get(recurring)).toMatchObject({ status: 'active', name: 'hourly' })
  await expect(kit.jobs.create({ name: 'hourly', queue: 'emails', every: 'PT1H' })).rejects.toMatchObject({
    code: 'name_taken',
  })
})

test('a job created by SQL that cannot be understood is paused with the reason', async () => {
  const { kit, pool } = await startKit({ start: new Date() })
  const { rows } = await pool.query(`select create_job('{"queue": "emails", "cron": "61 * * * *"}') as id`)
  kit.clock.advance(5_000)
  await kit.settle()
  expect(await kit.jobs.get(rows[0].id)).toMatchObject({
    status: 'paused',
    pausedReason: expect.stringMatching(/^cannot be understood: .*cron/),
  })
  await kit.pass(HOUR)
  expect(await kit.jobs.get(rows[0].id)).toMatchObject({ status: 'paused' })
})

test('SQL is refused what is no job at all', async () => {
  const { pool } = await startKit()
  await expect(pool.query(`select create_job('[]')`)).rejects.toThrow(/JSON object/)
  await expect(pool.query(`select create_job('{"queue": "a", "tenant": "nobody"}')`)).rejects.toThrow(
    /no tenant nobody/,
  )
})

test('an interval has its first time when it was asked for, though a moment passes until it has its place', async () => {
  const { kit } = await startKit()
  const asked = kit.now()
  const pausing = { clock: 0 }
  const job = {
    queue: 'q',
    every: '1h',
    // Read while the job is understood: as if that had taken a while.
    get payload() {
      if (pausing.clock++ === 0) kit.clock.advance(5)
      return 1
    },
  }
  const { nextRunAt } = await kit.jobs.create(job)
  expect(kit.now()).not.toEqual(asked)
  expect(nextRunAt).toEqual(asked)
})
