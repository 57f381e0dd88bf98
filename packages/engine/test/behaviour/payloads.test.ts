import { expect, test } from 'vitest'
import type { TestKit } from '../../src/testing/index.ts'
import { HOUR, record, START, startKit } from './kit.ts'

const DAY = 24 * HOUR

async function setup(start = START) {
  const t = await startKit({ start })
  const tenant = await t.kit.tenant('default')
  const put = async (text = 'hello') => (await tenant.payloads.put(Buffer.from(text), 'text/plain')).payloadRef
  const count = async () => Number((await t.query<{ n: string }>('select count(*) as n from payloads'))[0]?.n)
  const uses = async () => Number((await t.query<{ n: string }>('select count(*) as n from payload_uses'))[0]?.n)
  /** Performs the queue and remembers what each run found under its reference. */
  const readAll = async (queue: string) => {
    const found: (string | null)[] = []
    await t.kit.handle(queue, async (run) => {
      found.push((await tenant.payloads.get(run.payloadRef ?? ''))?.bytes.toString() ?? null)
    })
    return found
  }
  return { ...t, tenant, put, count, uses, readAll }
}

/** With a purge every third day, or so often, and one at the end; what is due is performed when the last of them is over. */
async function passDays(kit: TestKit, days: number, purgeEvery = 3): Promise<void> {
  for (let day = 0; day < days; day += purgeEvery) {
    kit.clock.advance(Math.min(purgeEvery, days - day) * DAY)
    await kit.purge()
  }
  await kit.settle()
}

test('the payload of a job that is due in 60 days is there when it runs, and goes 30 days after', async () => {
  const t = await setup()
  const found = await t.readAll('reports')
  const payloadRef = await t.put()
  await t.kit.jobs.create({ queue: 'reports', payloadRef, delay: '60d' })
  await passDays(t.kit, 60)
  expect(found).toEqual(['hello'])
  await passDays(t.kit, 30)
  expect(await t.count()).toBe(1)
  await passDays(t.kit, 2)
  expect(await t.count()).toBe(0)
  expect(await t.uses()).toBe(0)
})

test('the payload of a job that nobody reads by reference stays until 30 days after its time all the same', async () => {
  const t = await setup()
  await record(t.kit, 'reports')
  await t.kit.jobs.create({ queue: 'reports', payloadRef: await t.put(), delay: '60d' })
  await passDays(t.kit, 89)
  expect(await t.count()).toBe(1)
  await passDays(t.kit, 3)
  expect(await t.count()).toBe(0)
})

test.each([
  ['every other month', '0 0 1 */2 *', [59, 61, 61], 2],
  ['once a year', '0 0 1 6 *', [151, 365, 366], 10],
])('the payload of a job that runs %s is there at every run', async (_name, cron, days, purgeEvery) => {
  const t = await setup()
  t.kit.clock.advance(1)
  const found = await t.readAll('reports')
  const { jobId } = await t.kit.jobs.create({ queue: 'reports', payloadRef: await t.put(), cron })
  for (const until of days) await passDays(t.kit, until, purgeEvery)
  expect(found).toEqual(['hello', 'hello', 'hello'])
  await t.kit.jobs.cancel(jobId)
  // Nothing is to come: it goes 30 days after its last use.
  await passDays(t.kit, 29)
  expect(await t.count()).toBe(1)
  await passDays(t.kit, 3)
  expect(await t.count()).toBe(0)
  expect(await t.uses()).toBe(0)
})

test('a paused job keeps its payload, however long the pause', async () => {
  const t = await setup()
  const found = await t.readAll('reports')
  const job = { queue: 'reports', payloadRef: await t.put(), every: '1d', startAt: new Date(START + DAY) }
  const { jobId } = await t.kit.jobs.create(job)
  await t.kit.jobs.pause(jobId)
  await passDays(t.kit, 100)
  expect(await t.count()).toBe(1)
  await t.kit.jobs.resume(jobId)
  await t.kit.pass(DAY)
  expect(found).toEqual(['hello'])
})

test('a run that waits for a worker and a dead letter keep the payload that they need', async () => {
  const t = await setup()
  await t.kit.jobs.create({ queue: 'nobody', payloadRef: await t.put('waits') })
  await t.kit.handle('broken', () => {
    throw new Error('no')
  })
  const { jobId } = await t.kit.jobs.create({
    queue: 'broken',
    payloadRef: await t.put('dead'),
    retry: { maxAttempts: 1 },
  })
  await t.kit.settle()
  await passDays(t.kit, 70)
  expect(await t.count()).toBe(2)
  const { items } = await t.kit.deadLetters.list({ jobId })
  await t.tenant.deadLetters.delete(items[0]?.runId ?? '')
  await passDays(t.kit, 65)
  expect(await t.count()).toBe(1)
})

test('an update that names another payload lets the first one go, and holds the new one', async () => {
  const t = await setup()
  const found = await t.readAll('reports')
  const [first, second] = [await t.put('first'), await t.put('second')]
  const { jobId } = await t.kit.jobs.create({ queue: 'reports', payloadRef: first, delay: '50d' })
  await passDays(t.kit, 10)
  await t.kit.jobs.update(jobId, { payloadRef: second, runAt: new Date(START + 100 * DAY) })
  await passDays(t.kit, 60)
  expect(await t.tenant.payloads.get(first)).not.toBeNull()
  await passDays(t.kit, 30)
  expect(found).toEqual(['second'])
  await passDays(t.kit, 2)
  expect(await t.tenant.payloads.get(first)).toBeNull()
})

test('a payload that many jobs share stays for the last of them', async () => {
  const t = await setup()
  const found = await t.readAll('reports')
  const payloadRef = await t.put()
  const delays = ['1d', '70d', '40d', '1s']
  await t.kit.jobs.createMany(delays.map((delay) => ({ queue: 'reports', payloadRef, delay })))
  expect((await t.tenant.payloads.get(payloadRef))?.expiresAt).toEqual(new Date(START + 100 * DAY))
  for (const days of [1, 39, 30]) await passDays(t.kit, days)
  expect(found).toEqual(Array.from({ length: 4 }, () => 'hello'))
})

const MISSING = `pl_${'0'.repeat(12)}7000${'8'.repeat(16)}`
const refused = { code: 'invalid_job', complaints: [{ path: 'payloadRef', message: `there is no payload ${MISSING}` }] }
const inBatch = (position: number) => ({
  code: 'invalid_job',
  complaints: [{ path: `[${position}].payloadRef`, message: `there is no payload ${MISSING}` }],
})

test('a job that names a payload which does not exist is refused, and nothing of its call is stored', async () => {
  const t = await setup()
  const job = { queue: 'reports', payloadRef: MISSING }
  await expect(t.kit.jobs.create(job)).rejects.toMatchObject(refused)
  await expect(t.kit.jobs.create({ ...job, delay: '1d', name: 'x' })).rejects.toMatchObject(refused)
  await expect(t.kit.jobs.create({ ...job, every: '1d', idempotencyKey: 'k' })).rejects.toMatchObject(refused)
  const good = { queue: 'reports', payloadRef: await t.put() }
  await expect(t.kit.jobs.createMany([good, { queue: 'reports' }, job])).rejects.toMatchObject(inBatch(2))
  const other = await t.tenant.jobs.create(good)
  await expect(t.kit.jobs.update(other.jobId, { payloadRef: MISSING })).rejects.toMatchObject({ code: 'already_due' })
  const later = await t.tenant.jobs.create({ ...good, delay: '1d' })
  await expect(t.kit.jobs.update(later.jobId, { payloadRef: MISSING })).rejects.toMatchObject(refused)
  expect(await t.kit.jobs.get(later.jobId)).toMatchObject({ payloadRef: good.payloadRef, version: 1 })
  expect(await t.query('select from specs')).toHaveLength(2)
  expect(await t.query('select from jobs')).toHaveLength(0)
  expect(await t.query('select from keys')).toHaveLength(0)
  expect(await t.uses()).toBe(2)
})

test("another tenant's payload is none, and a reference of another kind is the workers' business", async () => {
  const t = await setup()
  await t.query(`insert into tenants (id, name) values (2, 'other')`)
  const other = await t.kit.tenant('other')
  const payloadRef = await t.put()
  await expect(other.jobs.create({ queue: 'reports', payloadRef })).rejects.toMatchObject({ code: 'invalid_job' })
  for (const ref of ['s3://bucket/key', 'pl_mine', `${payloadRef}x`])
    await other.jobs.create({ queue: 'reports', payloadRef: ref })
  expect(await t.uses()).toBe(0)
})

test("in a caller's transaction a missing payload leaves neither job nor key, though the caller goes on and commits", async () => {
  const t = await setup()
  const client = await t.pool.connect()
  try {
    await client.query('begin')
    const job = { queue: 'reports', payloadRef: MISSING, name: 'digest', idempotencyKey: 'k' }
    await expect(t.kit.jobs.create(job, { tx: client })).rejects.toMatchObject(inBatch(0))
    await t.kit.jobs.create({ ...job, payloadRef: await t.put(), delay: '90d' }, { tx: client })
    await client.query('commit')
  } finally {
    client.release()
  }
  expect(await t.query('select from specs')).toHaveLength(1)
  expect(await t.query('select from keys')).toHaveLength(2)
  await passDays(t.kit, 60)
  expect(await t.count()).toBe(1)
})

test('a repeated create is answered by its first job, though its payload was deleted, and announces nothing', async () => {
  const t = await setup()
  const job = { queue: 'reports', payloadRef: await t.put(), delay: '2h', idempotencyKey: 'k' }
  const first = await t.kit.jobs.create(job)
  expect(await t.kit.jobs.create(job)).toMatchObject({ jobId: first.jobId, deduplicated: true })
  expect(await t.uses()).toBe(1)
  await t.tenant.payloads.delete(job.payloadRef)
  expect(await t.kit.jobs.create(job)).toMatchObject({ jobId: first.jobId, deduplicated: true })
  await expect(t.kit.jobs.create({ ...job, idempotencyKey: 'other' })).rejects.toMatchObject({ code: 'invalid_job' })
  expect(await t.uses()).toBe(1)
})

test('a job that SQL created with a missing payload is paused with the reason', async () => {
  // SQL has its own clock.
  const t = await setup(Date.now() + HOUR)
  const [row] = await t.query<{ id: string }>('select create_job($1) as id', [
    { queue: 'reports', payloadRef: MISSING },
  ])
  await t.kit.settle()
  const job = await t.kit.jobs.get(row?.id ?? '')
  expect(job).toMatchObject({ status: 'paused', pausedReason: expect.stringContaining('there is no payload') })
})
