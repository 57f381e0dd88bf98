import { expect, test } from 'vitest'
import { held, MINUTE, record, SECOND } from '../behaviour/kit.ts'
import { refusalOf, startTenants } from './setup.ts'

const work = (count: number, rest: object = {}) =>
  Array.from({ length: count }, () => ({ queue: 'work', payload: 1, ...rest }))

async function setup(settings: object) {
  const t = await startTenants()
  await t.own.queues.put('work', settings)
  await t.kit.pulse()
  const depth = async () => (await t.query('select from runs')).length
  return { ...t, depth }
}

test('a queue refuses what it has no room for, says so, and nothing is stored', async () => {
  const { own, query } = await setup({ maxDepth: 5 })
  await own.jobs.createMany(work(5))
  const refused = own.jobs.create({ queue: 'work', name: 'sixth', idempotencyKey: 'i' })
  await expect(refused).rejects.toMatchObject({
    code: 'queue_full',
    status: 429,
    retryAfterSeconds: expect.any(Number),
  })
  await expect(own.jobs.create({ queue: 'work' })).rejects.toThrow('5 runs wait in it, and its maxDepth is 5')
  expect(await query('select from keys')).toEqual([])
  expect(await query('select from specs')).toHaveLength(5)
  // Other queues, and definitions that are no load, are let in.
  await own.jobs.create({ queue: 'other' })
  await own.jobs.create({ queue: 'work', every: '1h', startAt: new Date(Date.UTC(2030, 0, 1)) })
})

test('a batch is refused whole', async () => {
  const { own, query } = await setup({ maxDepth: 5 })
  await own.jobs.createMany(work(3))
  const refusal = await refusalOf(own.jobs.createMany(work(3)))
  expect(refusal).toMatchObject({ code: 'queue_full', message: expect.stringContaining('3 more do not fit') })
  expect((await refusalOf(own.jobs.createMany(work(6)))).message).toContain('never fit')
  expect(await query('select from specs')).toHaveLength(3)
  await own.jobs.createMany(work(2))
})

test('what would be planned ahead is refused as well, and what was planned before comes in', async () => {
  const { kit, own, depth } = await setup({ maxDepth: 3 })
  await own.jobs.createMany(work(3, { delay: '10s' }))
  await own.jobs.createMany(work(3))
  expect((await refusalOf(own.jobs.create({ queue: 'work', delay: '10s' }))).code).toBe('queue_full')
  await kit.pass(11 * SECOND)
  // Whatever the engine makes itself is never refused.
  expect(await depth()).toBe(6)
})

test('a repeated request is answered as it was, and so is one that its unique key answers', async () => {
  const { own } = await setup({ maxDepth: 2 })
  const keyed = { queue: 'work', idempotencyKey: 'a' }
  const first = await own.jobs.create(keyed)
  const unique = await own.jobs.create({ queue: 'work', unique: { key: 'u' } })
  expect((await refusalOf(own.jobs.create({ queue: 'work' }))).code).toBe('queue_full')
  expect(await own.jobs.create(keyed)).toMatchObject({ jobId: first.jobId, deduplicated: true })
  expect(await own.jobs.create({ queue: 'work', unique: { key: 'u' } })).toMatchObject({ jobId: unique.jobId })
})

test("a caller's transaction is not refused, unless it asks for it; nor is what SQL creates", async () => {
  const { kit, pool, query } = await setup({ maxDepth: 1 })
  await kit.jobs.createMany(work(1))
  const client = await pool.connect()
  try {
    await client.query('begin')
    await kit.jobs.create({ queue: 'work' }, { tx: client })
    const asked = kit.jobs.create({ queue: 'work' }, { tx: client, whenFull: 'refuse' })
    await expect(asked).rejects.toMatchObject({ code: 'queue_full' })
    await client.query('commit')
    await client.query(`select create_job('{"queue": "work", "payload": 1}')`)
    // It is planned by the clock of the database, which is not the one of the kit.
    await client.query(`update timers set due_at = '2026-01-01' where nominal_at is null`)
  } finally {
    client.release()
  }
  await kit.jobs.create({ queue: 'work' }, { whenFull: 'accept' })
  await kit.settle()
  expect(await query('select from runs')).toHaveLength(4)
})

test('the next run may not have waited for longer than maxAge', async () => {
  const { kit, own } = await setup({ maxAge: '1m' })
  await own.jobs.createMany(work(2))
  await kit.pass(50 * SECOND)
  await own.jobs.create({ queue: 'work' })
  await kit.pass(15 * SECOND)
  const refusal = await refusalOf(own.jobs.create({ queue: 'work' }))
  expect(refusal).toMatchObject({ code: 'queue_full', message: expect.stringContaining('65000 ms') })
  await record(kit, 'work')
  await kit.settle()
  await kit.pass(2 * SECOND)
  await own.jobs.create({ queue: 'work' })
})

test('a queue lets in again what it has room for, and says when that will be', async () => {
  const { kit, own } = await setup({ maxDepth: 100 })
  const { gate, letGo } = held()
  await own.jobs.createMany(work(100))
  const first = await refusalOf(own.jobs.create({ queue: 'work' }))
  expect(first.code).toBe('queue_full')
  // Ten of them are under way after a second, and wait no longer.
  await kit.handle('work', () => gate, { concurrency: 10 })
  await kit.pass(SECOND, { running: 'leave' })
  await own.jobs.createMany(work(10))
  await expect(own.jobs.create({ queue: 'work' })).rejects.toMatchObject({ code: 'queue_full', retryAfterSeconds: 1 })
  letGo()
  await kit.settle()
  await kit.pass(SECOND)
  await own.jobs.createMany(work(100))
})

test('runs that wait for a slot of their key wait in the queue', async () => {
  const { kit, own } = await setup({ maxDepth: 4 })
  const { gate, letGo } = held()
  await kit.handle('work', () => gate)
  const keyed = { concurrency: { key: 'k', limit: 1 } }
  await own.jobs.createMany(work(4, keyed))
  await kit.settle({ running: 'leave' })
  await kit.pass(2 * SECOND, { running: 'leave' })
  await own.jobs.create({ queue: 'work', ...keyed })
  expect((await refusalOf(own.jobs.create({ queue: 'work', ...keyed }))).code).toBe('queue_full')
  letGo()
  await kit.settle()
})

test('limits are set, shown, and taken away', async () => {
  const { kit, own, query } = await setup({ maxDepth: 1, maxAge: '5m', defaults: { jitter: '10s' } })
  const shown = { maxDepth: 1, maxAgeMs: 5 * MINUTE, defaults: { jitterMs: 10 * SECOND } }
  expect(await own.queues.get('work')).toMatchObject(shown)
  await own.queues.put('work', { maxDepth: null })
  expect(await own.queues.get('work')).toMatchObject({ ...shown, maxDepth: null })
  await kit.pulse()
  await own.jobs.createMany(work(3))
  const changes = await query('select action, actor from job_changes where subject = 1 order by changed_at, action')
  expect(changes).toEqual([
    { action: 'set', actor: 'bk_own' },
    { action: 'set', actor: 'bk_own' },
  ])
  for (const wrong of [{ maxDepth: 0 }, { maxDepth: 1_000_001 }, { maxAge: '0s' }, { defaults: { jitter: '2m' } }])
    expect((await refusalOf(own.queues.put('work', wrong))).code).toBe('invalid_argument')
  expect((await refusalOf(own.queues.put('http', { maxDepth: 1 }))).code).toBe('forbidden')
})

test('recurring jobs that say nothing are spread as their queue says, also when they are declared again', async () => {
  const { own, query } = await setup({ defaults: { jitter: '10s' } })
  const hourly = { queue: 'work', cron: '0 * * * *' }
  const { jobId } = await own.jobs.create(hourly)
  const spread = async (id: string) =>
    (await query<{ jitter_ms: number }>('select jitter_ms from timers where job_id = $1', [id]))[0]?.jitter_ms ?? -1
  expect(await spread(jobId)).toBeGreaterThan(0)
  expect(await spread(jobId)).toBeLessThanOrEqual(10 * SECOND)
  expect(await own.jobs.get(jobId)).toMatchObject({ schedule: { jitter: 'PT10S' } })
  expect(await spread((await own.jobs.create({ ...hourly, jitter: '0s' })).jobId)).toBe(0)
  const named = await own.jobs.upsert('report', hourly)
  expect(await own.jobs.upsert('report', hourly)).toEqual({ ...named, created: false })
  expect(await own.jobs.get(named.jobId)).toMatchObject({ version: 1 })
})
