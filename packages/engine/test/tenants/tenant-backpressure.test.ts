import { expect, test } from 'vitest'
import { held, record, SECOND } from '../behaviour/kit.ts'
import { setup as setupNodes } from '../races/setup.ts'
import { refusalOf, startTenants } from './setup.ts'

const work = (count: number, rest: object = {}) =>
  Array.from({ length: count }, () => ({ queue: 'work', payload: 1, ...rest }))
const call = { http: { url: 'https://api.example.com/' } }

interface Quotas {
  runs?: number
  seconds?: number
  /** Whose; `full` is the tenant that has them, `free` the one beside it. */
  of?: 'default' | 'other'
}

async function setup({ runs, seconds, of = 'other' }: Quotas) {
  const t = await startTenants()
  await t.query('update tenants set max_waiting_runs = $1, max_waiting_seconds = $2 where name = $3', [
    runs ?? null,
    seconds ?? null,
    of,
  ])
  await t.kit.pulse()
  const [full, free] = of === 'other' ? [t.other, t.own] : [t.own, t.other]
  const stored = async () => (await t.query('select from specs')).length
  return { ...t, full, free, stored }
}

for (const of of ['other', 'default'] as const)
  test(`the tenant ${of} is refused what its quota has no room for, over all queues, and nothing is stored`, async () => {
    const { full, free, query, stored } = await setup({ runs: 5, of })
    await full.jobs.createMany(work(2))
    await full.jobs.createMany([{ queue: 'elsewhere' }, call])
    await full.jobs.create(call)
    const refused = full.jobs.create({ queue: 'third', idempotencyKey: 'i' })
    await expect(refused).rejects.toMatchObject({
      code: 'tenant_full',
      status: 429,
      retryAfterSeconds: expect.any(Number),
      message: `the tenant "${of}" is full: 5 runs wait in all its queues, and its quota waitingRuns is 5`,
    })
    expect((await refusalOf(full.jobs.create(call))).code).toBe('tenant_full')
    expect((await refusalOf(full.batches.create([call], {}))).code).toBe('tenant_full')
    expect((await refusalOf(full.jobs.upsert('sixth', { queue: 'work' }))).code).toBe('tenant_full')
    expect(await query('select from keys')).toEqual([])
    expect(await stored()).toBe(5)
    // Whatever waits of one tenant is nothing to another.
    await free.jobs.createMany([...work(10), call])
  })

test('what waits is counted anew, with what came otherwise', async () => {
  for (const of of ['other', 'default'] as const) {
    const { kit, full, free } = await setup({ runs: 5, of })
    await free.jobs.createMany(work(20))
    await full.jobs.createMany(work(3, { delay: '10s' }))
    await full.jobs.createMany(work(3))
    await kit.pass(11 * SECOND)
    // What the engine makes of timers that are due is never refused.
    const { code, message } = await refusalOf(full.jobs.create(call))
    expect([code, message]).toEqual(['tenant_full', expect.stringContaining('more than 5 runs wait in all its queues')])
  }
})

test('a batch is refused whole, and one that never fits is told so', async () => {
  const { full, stored } = await setup({ runs: 5 })
  await full.jobs.createMany(work(3))
  const refusal = await refusalOf(full.jobs.createMany([...work(2), call]))
  expect(refusal).toMatchObject({ code: 'tenant_full', message: expect.stringContaining('3 more do not fit') })
  expect(await refusalOf(full.jobs.createMany([...work(3), call, call, call]))).toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining('send at most 5 of them'),
  })
  expect(await stored()).toBe(3)
  await full.jobs.createMany([call, { queue: 'other' }])
})

test('what is no load, or was there before, is let in; what is planned ahead is not', async () => {
  const { full, query } = await setup({ runs: 2 })
  const keyed = { queue: 'work', idempotencyKey: 'a' }
  const first = await full.jobs.create(keyed)
  const unique = await full.jobs.create({ queue: 'work', unique: { key: 'u' } })
  expect((await refusalOf(full.jobs.create({ queue: 'work', delay: '1h' }))).code).toBe('tenant_full')
  expect(await full.jobs.create(keyed)).toMatchObject({ jobId: first.jobId, deduplicated: true })
  expect(await full.jobs.create({ queue: 'work', unique: { key: 'u' } })).toMatchObject({ jobId: unique.jobId })
  const hourly = await full.jobs.create({ queue: 'work', cron: '0 * * * *' })
  await full.jobs.trigger(hourly.jobId)
  expect(await query('select from runs')).toHaveLength(3)
})

test("a caller's transaction is not refused, unless it asks for it; whoever accepts everything may outside of one", async () => {
  const { kit, pool, query } = await setup({ runs: 1 })
  const job = { tenant: 'other', queue: 'work' }
  await kit.jobs.create(job)
  const client = await pool.connect()
  try {
    await client.query('begin')
    await kit.jobs.create(job, { tx: client })
    const asked = kit.jobs.create(job, { tx: client, whenFull: 'refuse' })
    await expect(asked).rejects.toMatchObject({ code: 'tenant_full' })
    await client.query('commit')
  } finally {
    client.release()
  }
  await kit.jobs.create(job, { whenFull: 'accept' })
  await kit.settle()
  expect(await query('select from runs')).toHaveLength(3)
})

test('of one call for two tenants, nothing is made if one of them is full', async () => {
  const { kit, stored } = await setup({ runs: 1 })
  const job = { tenant: 'other', queue: 'work' }
  await kit.jobs.create(job)
  expect((await refusalOf(kit.jobs.createMany([{ queue: 'work' }, job]))).code).toBe('tenant_full')
  expect(await stored()).toBe(1)
})

for (const of of ['other', 'default'] as const)
  test(`the oldest run of the tenant ${of} may not have been due for longer than waitingSeconds`, async () => {
    const { kit, full, free } = await setup({ seconds: 60, of })
    await full.jobs.create(call)
    await kit.pass(50 * SECOND)
    await full.jobs.createMany(work(20))
    await kit.pass(15 * SECOND)
    expect(await refusalOf(full.jobs.create({ queue: 'work' }))).toEqual({
      code: 'tenant_full',
      message: `the tenant "${of}" is late: its oldest run has waited for 65 s, and its quota waitingSeconds is 60`,
    })
    await free.jobs.createMany(work(20))
  })

test('a tenant is let in again when what waited has been started, and is told when that will be', async () => {
  const { kit, full } = await setup({ runs: 100, seconds: 60 })
  const { gate, letGo } = held()
  await full.jobs.createMany(work(100))
  expect((await refusalOf(full.jobs.create(call))).code).toBe('tenant_full')
  // Ten of them are under way after a second, and wait no longer.
  await kit.handle('work', () => gate, { concurrency: 10, tenant: 'other' })
  await kit.pass(SECOND, { running: 'leave' })
  await full.jobs.createMany(work(10))
  await expect(full.jobs.create(call)).rejects.toMatchObject({ code: 'tenant_full', retryAfterSeconds: 1 })
  letGo()
  await kit.settle()
  await kit.pass(SECOND)
  await full.jobs.createMany(work(100))
})

test('a tenant that was late is let in again when the oldest has been started', async () => {
  const { kit, full } = await setup({ seconds: 60 })
  await full.jobs.create({ queue: 'slow' })
  await kit.pass(65 * SECOND)
  expect((await refusalOf(full.jobs.create({ queue: 'work' }))).code).toBe('tenant_full')
  await kit.handle('slow', () => {}, { tenant: 'other' })
  await kit.settle()
  await kit.pass(2 * SECOND)
  await full.jobs.create({ queue: 'work' })
})

test('runs that wait for a slot of their key wait to be started; such as are at work or in backoff do not', async () => {
  const { kit, own: full, query } = await setup({ runs: 4, of: 'default' })
  const { gate, letGo } = held()
  await kit.handle('work', () => gate)
  await record(kit, 'failing', () => Promise.reject(new Error('down')))
  const keyed = { concurrency: { key: 'k', limit: 1 } }
  await full.jobs.create({ queue: 'failing', retry: { backoff: { type: 'fixed', initial: '1h', jitter: 0 } } })
  await full.jobs.createMany(work(3, keyed))
  await kit.settle({ running: 'leave' })
  await kit.pass(2 * SECOND, { running: 'leave' })
  expect(await query('select state from runs order by state')).toEqual([
    { state: 1 },
    { state: 2 },
    { state: 4 },
    { state: 4 },
  ])
  await full.jobs.createMany(work(2, keyed))
  expect((await refusalOf(full.jobs.create({ queue: 'work', ...keyed }))).code).toBe('tenant_full')
  letGo()
  await kit.settle()
})

test('a call that one limit lets in and another refuses counts in neither', async () => {
  const { full, kit } = await setup({ runs: 8 })
  await full.queues.put('wide', { maxDepth: 10 })
  await full.queues.put('narrow', { maxDepth: 2 })
  await kit.pulse()
  const many = (queue: string, count: number) => full.jobs.createMany(work(count, { queue }))
  await many('wide', 5)
  for (let i = 0; i < 3; i++) {
    expect((await refusalOf(many('wide', 4))).code).toBe('tenant_full')
    expect((await refusalOf(full.jobs.createMany([...work(2, { queue: 'narrow' }), ...work(2)]))).code).toBe(
      'tenant_full',
    )
  }
  await many('narrow', 1)
  for (let i = 0; i < 3; i++) expect((await refusalOf(many('narrow', 2))).code).toBe('queue_full')
  await many('wide', 2)
  expect((await refusalOf(many('wide', 1))).code).toBe('tenant_full')
})

test('every node knows the quotas with its next pulse, and an installation without any measures nothing', async () => {
  const t = await setupNodes()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { tenants } = a.engine.admin
  const { id } = await tenants.create({ name: 'acme', quotas: { waitingRuns: 1 } }, 'root')
  const idle = () => [a, b].map(({ engine }) => engine.known.room.isIdle)
  const job = { tenant: 'acme', queue: 'work' }
  await b.jobs.createMany([job, job])
  expect(idle()).toEqual([true, true])
  for (const { engine } of [a, b]) await engine.pulse.runOnce()
  expect(idle()).toEqual([false, false])
  for (const { jobs } of [a, b]) expect((await refusalOf(jobs.create(job))).code).toBe('tenant_full')
  await tenants.update(id, { quotas: { waitingRuns: null } }, 'root')
  for (const { engine } of [a, b]) await engine.pulse.runOnce()
  expect(idle()).toEqual([true, true])
  await b.jobs.create(job)
})
