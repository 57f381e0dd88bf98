import { expect, test } from 'vitest'
import { held, MINUTE, record, startKit } from './kit.ts'

async function setup() {
  const t = await startKit()
  const query = async (text: string) => (await t.query(text)).length
  return { ...t, tenant: await t.kit.tenant('default'), rows: (table: string) => query(`select from ${table}`) }
}
const HOURLY = { queue: 'mail', cron: '30 * * * *', payload: { to: 'all' } }

test('a run of a recurring job can be triggered with a payload of its own; the others have their job’s', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'mail')
  const { jobId } = await t.kit.jobs.create(HOURLY)
  const { runId } = await t.kit.jobs.trigger(jobId, { payload: { to: 'ada' } })
  await t.kit.settle()
  await t.kit.jobs.trigger(jobId)
  await t.kit.pass(40 * MINUTE)
  expect(seen.map(({ payload }) => payload)).toEqual([{ to: 'ada' }, { to: 'all' }, { to: 'all' }])
  expect(await t.kit.runs.get(runId)).toMatchObject({ cause: 'trigger', status: 'succeeded', payload: { to: 'ada' } })
  expect(await t.tenant.runs.get(runId)).toMatchObject({ payload: { to: 'ada' } })
  expect(await t.kit.jobs.get(jobId)).toMatchObject({ payload: { to: 'all' }, version: 1 })
  expect((await t.kit.runs.list({ jobId })).items).toHaveLength(3)
})

test('so can a one-off that waits for its time, and null is a payload too', async () => {
  const t = await setup()
  const seen = await record(t.kit, 'mail')
  const { jobId } = await t.kit.jobs.create({ queue: 'mail', payload: 1, delay: '1h' })
  await t.kit.jobs.trigger(jobId, { payload: null })
  await t.kit.jobs.trigger(jobId, { payload: 2 })
  await t.kit.jobs.trigger(jobId)
  await t.kit.settle()
  await t.kit.pass(60 * MINUTE)
  expect(seen.map(({ payload }) => payload)).toEqual([null, 2, 1, 1])
})

test('many triggers with payloads of their own, claimed together with scheduled runs, do not mix them up', async () => {
  const t = await setup()
  const { jobId } = await t.kit.jobs.create({ ...HOURLY, overlap: 'allow' })
  const once = await t.kit.jobs.create({ queue: 'mail', payload: 'once', delay: '30m' })
  const wanted = new Map<string, unknown>()
  for (let n = 0; n < 50; n++) {
    wanted.set((await t.kit.jobs.trigger(jobId, { payload: n })).runId, n)
    wanted.set((await t.kit.jobs.trigger(once.jobId, { payload: [n] })).runId, [n])
    wanted.set((await t.kit.jobs.trigger(jobId)).runId, { to: 'all' })
  }
  t.kit.clock.advance(30 * MINUTE)
  await t.kit.readTimers()
  await t.kit.promote()
  const seen = new Map<string, unknown>()
  await t.kit.handle('mail', ({ id, payload }) => void seen.set(id, payload), { concurrency: 1_000 })
  await t.kit.settle()
  expect(seen.size).toBe(152)
  for (const [id, payload] of wanted) expect(seen.get(id)).toEqual(payload)
})

test('a payload of its own stays with the run over retries, a lost worker, death and redrive', async () => {
  const t = await setup()
  let works = false
  const seen = await record(t.kit, 'mail', () => (works ? 'ok' : Promise.reject(new Error('no'))))
  const { jobId } = await t.kit.jobs.create({ ...HOURLY, cron: '0 0 1 1 *', retry: { maxAttempts: 3 } })
  const { runId } = await t.kit.jobs.trigger(jobId, { payload: 'own' })
  await t.kit.pass(5 * MINUTE)
  expect(seen.map(({ payload, attempt }) => [payload, attempt])).toEqual([1, 2, 3].map((n) => ['own', n]))
  works = true
  await t.kit.jobs.update(jobId, { payload: 'new', labels: { a: 'b' } })
  await t.kit.deadLetters.redrive(runId)
  await t.kit.settle()
  expect(seen.at(-1)).toMatchObject({ payload: 'own', attempt: 4 })
  expect(await t.kit.runs.get(runId)).toMatchObject({ status: 'succeeded', attempt: 4, payload: 'own' })
})

test('a lease that expires gives a run with its own payload to the next worker, by the retry policy of its job', async () => {
  const t = await setup()
  const never = held()
  let first = true
  const seen = await record(t.kit, 'mail', () => {
    if (!first) return 'ok'
    first = false
    return never.gate
  })
  const { jobId } = await t.kit.jobs.create({ ...HOURLY, cron: '0 0 1 1 *', retry: { maxAttempts: 2 } })
  await t.kit.jobs.trigger(jobId, { payload: 'own' })
  await t.kit.settle({ running: 'leave' })
  t.kit.clock.advance(60_001)
  expect(await t.kit.reap()).toBe(1)
  await t.kit.claim('mail')
  await t.kit.settle({ running: 'leave' })
  expect(seen.map(({ payload, attempt }) => [payload, attempt])).toEqual([
    ['own', 1],
    ['own', 2],
  ])
  never.letGo()
})

test('one trigger may pass the policy of its job, or be stricter than it', async () => {
  const t = await setup()
  const { jobId } = await t.kit.jobs.create({ ...HOURLY, queue: 'idle' })
  await t.kit.jobs.trigger(jobId)
  await expect(t.kit.jobs.trigger(jobId)).rejects.toMatchObject({ code: 'overlap' })
  await t.kit.jobs.trigger(jobId, { overlap: 'allow', payload: 1 })
  await t.kit.jobs.trigger(jobId, { overlap: 'allow' })
  await expect(t.kit.jobs.trigger(jobId)).rejects.toMatchObject({ code: 'overlap' })
  expect((await t.kit.runs.list({ jobId })).items).toHaveLength(3)
  const loose = await t.kit.jobs.create({ ...HOURLY, queue: 'idle', overlap: 'allow' })
  await t.kit.jobs.trigger(loose.jobId)
  await expect(t.kit.jobs.trigger(loose.jobId, { overlap: 'skip' })).rejects.toMatchObject({ code: 'overlap' })
  const { items } = await t.tenant.jobs.changes(jobId)
  expect(items.at(-1)?.after).toMatchObject({ overlap: 'allow' })
})

test('what a run cannot be triggered with is refused by its name, and nothing is stored', async () => {
  const t = await setup()
  const { jobId } = await t.kit.jobs.create(HOURLY)
  const url = 'https://example.com/'
  const call = await t.kit.jobs.create({ cron: '0 0 1 1 *', http: { url, body: 'x' } })
  const get = await t.kit.jobs.create({ cron: '0 0 1 1 *', http: { url, method: 'GET' } })
  const refused = async (id: string, options: object, code: string, path: string) =>
    expect(t.tenant.jobs.trigger(id, options)).rejects.toMatchObject({ code, complaints: [{ path }] })
  await refused(jobId, { payload: 'x'.repeat(262_143) }, 'payload_too_large', 'payload')
  await refused(jobId, { payload: { a: 1n } }, 'invalid_argument', 'payload.a')
  await refused(jobId, { payload: 'a\0b' }, 'invalid_argument', 'payload')
  await refused(jobId, { overlap: 'maybe' }, 'invalid_argument', 'overlap')
  await refused(jobId, { paylod: 1 }, 'invalid_argument', 'paylod')
  await refused(call.jobId, { payload: 1 }, 'invalid_argument', 'payload')
  await refused(get.jobId, { payload: 1 }, 'invalid_argument', 'payload')
  expect(await t.rows('runs')).toBe(0)
  expect(await t.rows('run_payloads')).toBe(0)
})

test('payloads of runs go with the history, and those of dead letters stay', async () => {
  const t = await setup()
  await record(t.kit, 'mail', (run) => (run.payload === 'dies' ? run.fail('no') : 'ok'))
  const { jobId } = await t.kit.jobs.create({ ...HOURLY, cron: '0 0 29 2 *', overlap: 'allow' })
  await t.kit.jobs.trigger(jobId, { payload: 'dies' })
  await t.kit.jobs.trigger(jobId, { payload: 'lives' })
  await t.kit.settle()
  t.kit.clock.advance(399 * 24 * 60 * MINUTE)
  await t.kit.purge()
  expect(await t.rows('run_payloads')).toBe(2)
  t.kit.clock.advance(2 * 24 * 60 * MINUTE)
  await t.kit.purge()
  expect(await t.rows('run_payloads')).toBe(1)
})
