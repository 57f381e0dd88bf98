import { expect, test } from 'vitest'
import type { JobInput } from '../../src/intake/job-input.ts'
import { RUN_STATE } from '../../src/job/states.ts'
import { at, held, MINUTE, record, SECOND, startKit } from './kit.ts'

type Unique = NonNullable<JobInput['unique']>

const job = (unique: Omit<Unique, 'key'> = {}, rest: Partial<JobInput> = {}): JobInput => ({
  queue: 'work',
  payload: 1,
  unique: { key: 'k', ...unique },
  ...rest,
})

/** A kit whose queue `work` is performed only while nobody holds it. */
async function setup() {
  const t = await startKit()
  const { gate, letGo } = held()
  return { ...t, letGo, hold: () => record(t.kit, 'work', () => gate) }
}

const refused = { code: 'unique_conflict', status: 409 }

test('a job with a unique key is kept until it has ended, and answers whoever creates it again', async () => {
  const { kit, hold, letGo } = await setup()
  await hold()
  const first = await kit.jobs.create(job({}, { delay: '10s' }))
  expect(first.deduplicated).toBe(false)
  expect(await kit.jobs.create(job())).toMatchObject({ jobId: first.jobId, deduplicated: true })
  await kit.pass(11 * SECOND, { running: 'leave' })
  expect((await kit.runs.list({ status: 'running' })).items).toHaveLength(1)
  expect(await kit.jobs.create(job())).toMatchObject({ jobId: first.jobId, deduplicated: true })
  letGo()
  await kit.settle()
  const next = await kit.jobs.create(job())
  expect(next.deduplicated).toBe(false)
  expect(next.jobId).not.toBe(first.jobId)
})

test('a rejected create is told which job has the key, and leaves nothing behind', async () => {
  const { kit, query } = await setup()
  const first = await kit.jobs.create(job())
  const reject = job({ onConflict: 'reject' }, { name: 'other', idempotencyKey: 'i' })
  await expect(kit.jobs.create(reject)).rejects.toMatchObject(refused)
  await expect(kit.jobs.create(reject)).rejects.toThrow(first.jobId)
  await expect(kit.jobs.createMany([job({}, { unique: { key: 'free' } }), reject])).rejects.toMatchObject(refused)
  expect(await query('select key from keys')).toEqual([{ key: 'k' }])
  expect(await query('select from runs')).toHaveLength(1)
})

test('while queued, a job that has started lets another in, and that one keeps the key', async () => {
  const { kit, hold } = await setup()
  const queued = job({ while: 'queued' })
  const first = await kit.jobs.create(queued)
  expect(await kit.jobs.create(queued)).toMatchObject({ jobId: first.jobId, deduplicated: true })
  await hold()
  await kit.settle({ running: 'leave' })
  const second = await kit.jobs.create(queued)
  expect(second.deduplicated).toBe(false)
  expect(await kit.jobs.create(queued)).toMatchObject({ jobId: second.jobId, deduplicated: true })
})

test('while active, jobs that have not started stand beside each other; any of them that has keeps others out', async () => {
  const { kit, query, fabricate, hold } = await setup()
  const active = job({ while: 'active' })
  const [first] = [await kit.jobs.create(active), await kit.jobs.create(active), await kit.jobs.create(active)]
  expect(await query('select from runs')).toHaveLength(3)
  // The oldest of them is between two attempts: not the one that the key was given to last.
  await fabricate('update runs set attempt = 1, state = 2 where job_id = $1', [first?.jobId])
  expect(await kit.jobs.create(active)).toMatchObject({ jobId: first?.jobId, deduplicated: true })
  await fabricate('update runs set attempt = 0, state = 0 where job_id = $1', [first?.jobId])
  await hold()
  await kit.settle({ running: 'leave' })
  expect((await kit.jobs.create(active)).deduplicated).toBe(true)
})

test('a run that is being performed has started', async () => {
  const { kit } = await setup()
  const { gate, letGo } = held()
  const first = await kit.jobs.create(job())
  await kit.handle('work', () => gate, { concurrency: 200 })
  await kit.settle({ running: 'leave' })
  expect(await kit.jobs.create(job({ while: 'active' }))).toMatchObject({ jobId: first.jobId, deduplicated: true })
  await expect(kit.jobs.create(job({ onConflict: 'replace' }))).rejects.toMatchObject(refused)
  expect((await kit.jobs.create(job({ while: 'queued' }))).deduplicated).toBe(false)
  letGo()
  await kit.settle()
})

test('a replaced job that waits for its time has the new time, payload and policies, and the same id', async () => {
  const { kit, query } = await setup()
  const seen = await record(kit, 'work')
  const debounce = (payload: number, rest: Partial<JobInput> = {}) =>
    job({ onConflict: 'replace' }, { payload, delay: '10s', ...rest })
  const first = await kit.jobs.create(debounce(1))
  await kit.pass(5 * SECOND)
  const second = await kit.jobs.create(debounce(2, { priority: 7, labels: { a: 'b' } }))
  expect(second).toEqual({ jobId: first.jobId, deduplicated: true, replaced: true, nextRunAt: at(15 * SECOND) })
  await kit.pass(MINUTE)
  expect(seen.map(({ payload, at }) => [payload, at])).toEqual([[2, at(15 * SECOND)]])
  expect(await kit.jobs.get(first.jobId)).toMatchObject({ status: 'succeeded', version: 2, labels: { a: 'b' } })
  const changes = await query('select action, actor from job_changes where subject_id = $1', [first.jobId])
  expect(changes).toEqual([{ action: 'replace', actor: 'library' }])
})

test('a replaced job that waits for a worker goes back and comes at its new time; its old times are skips', async () => {
  const { kit, skipsOf } = await setup()
  const replace = { onConflict: 'replace' } as const
  const first = await kit.jobs.create(job(replace))
  await kit.settle()
  const second = await kit.jobs.create(job(replace, { payload: 2, delay: '1m' }))
  expect(second).toMatchObject({ jobId: first.jobId, replaced: true })
  const third = await kit.jobs.create(job(replace, { payload: 3 }))
  expect(third).toMatchObject({ jobId: first.jobId, replaced: true })
  const seen = await record(kit, 'work')
  await kit.pass(2 * MINUTE)
  expect(seen.map(({ payload }) => payload)).toEqual([3])
  expect(await skipsOf(first.jobId)).toMatchObject([
    { from: at(0), reason: 7, count: 1 },
    { from: at(MINUTE), reason: 7, count: 1 },
  ])
})

test.each<[string, number, Partial<JobInput>]>([
  ['a slot of its key', RUN_STATE.limited, { concurrency: { key: 'c', limit: 1 } }],
  ['the rate of its key', RUN_STATE.waiting, { rateLimit: { key: 'r', limit: 2, period: '1s', burst: 1 } }],
])('a replaced job that waits for %s goes back and comes at its new time', async (_, state, limit) => {
  const { kit, query, hold, letGo } = await setup()
  await hold()
  await kit.jobs.create({ queue: 'work', payload: 0, ...limit })
  await kit.settle({ running: 'leave' })
  const replace = (payload: number, delay: string) => job({ onConflict: 'replace' }, { ...limit, payload, delay })
  const first = await kit.jobs.create(replace(1, '0s'))
  await kit.settle({ running: 'leave' })
  expect(await query('select state from runs where job_id = $1', [first.jobId])).toEqual([{ state }])
  const second = await kit.jobs.create(replace(2, '1m'))
  expect(second).toMatchObject({ jobId: first.jobId, replaced: true })
  letGo()
  await kit.pass(2 * MINUTE)
  expect((await kit.runs.list({ jobId: first.jobId })).items).toMatchObject([
    { status: 'succeeded', dueAt: at(MINUTE) },
  ])
})

test('a job that has started is not replaced: the new one is refused, or made where only queued ones count', async () => {
  const { kit, hold } = await setup()
  await hold()
  const first = await kit.jobs.create(job({ onConflict: 'replace' }))
  await kit.settle({ running: 'leave' })
  await expect(kit.jobs.create(job({ onConflict: 'replace' }, { payload: 2 }))).rejects.toMatchObject(refused)
  const beside = await kit.jobs.create(job({ onConflict: 'replace', while: 'queued' }, { payload: 3 }))
  expect(beside).toMatchObject({ deduplicated: false })
  expect(beside.jobId).not.toBe(first.jobId)
})

test('a recurring job is queued as long as it has times to come, and is replaced as by an update', async () => {
  const { kit, hold, letGo } = await setup()
  const hourly = (rest: Partial<JobInput>) => job({ onConflict: 'replace' }, { name: 'report', ...rest })
  const first = await kit.jobs.create(hourly({ every: '1h' }))
  await hold()
  await kit.settle({ running: 'leave' })
  const second = await kit.jobs.create(hourly({ cron: '30 * * * *' }))
  expect(second).toMatchObject({ jobId: first.jobId, replaced: true, nextRunAt: at(30 * MINUTE) })
  expect(await kit.jobs.get(first.jobId)).toMatchObject({
    name: 'report',
    schedule: { cron: '30 * * * *' },
    version: 2,
  })
  await expect(kit.jobs.create(hourly({ delay: '1h' }))).rejects.toThrow('cannot become a one-off')
  await expect(kit.jobs.create(job({ onConflict: 'replace' }, { every: '1h' }))).rejects.toThrow('its name')
  letGo()
  await kit.settle()
})

test('in one call the first is kept, the last replaces, and a rejected one refuses the call', async () => {
  const { kit, query } = await setup()
  const kept = await kit.jobs.createMany([job({}, { payload: 1 }), job({}, { payload: 2 })])
  expect(kept[1]).toMatchObject({ jobId: kept[0]?.jobId, deduplicated: true })
  const last = (payload: number): JobInput => ({ queue: 'work', payload, unique: { key: 'r', onConflict: 'replace' } })
  const replaced = await kit.jobs.createMany([last(1), last(2), last(3)])
  expect(new Set(replaced.map(({ jobId }) => jobId)).size).toBe(1)
  const stored = await query(`select definition ->> 'payload' as payload from specs order by 1`)
  expect(stored).toEqual([{ payload: '1' }, { payload: '3' }])
  const twice: JobInput = { queue: 'work', payload: 1, unique: { key: 't', onConflict: 'reject' } }
  await expect(kit.jobs.createMany([twice, twice])).rejects.toMatchObject({
    code: 'unique_conflict',
    complaints: [{ path: '[1].unique.key' }],
  })
  expect(await query('select from specs')).toHaveLength(2)
})

test('an idempotency key is answered by the job that was kept, also later', async () => {
  const { kit } = await setup()
  const first = await kit.jobs.create(job())
  const keyed = job({}, { idempotencyKey: 'i' })
  expect(await kit.jobs.create(keyed)).toMatchObject({ jobId: first.jobId, deduplicated: true })
  await record(kit, 'work')
  await kit.settle()
  // The job has ended and the unique key is free, but this request has been answered before.
  expect(await kit.jobs.create(keyed)).toMatchObject({ jobId: first.jobId, deduplicated: true })
})

test('a retry takes the unique key again, unless another job has it', async () => {
  const { kit } = await setup()
  await record(kit, 'work', () => {
    throw new Error('no')
  })
  const once = { retry: { maxAttempts: 1 } }
  const first = await kit.jobs.create(job({}, once))
  await kit.settle()
  const [letter] = (await kit.deadLetters.list()).items
  const second = await kit.jobs.create(job({}, { ...once, delay: '1h' }))
  expect(second.deduplicated).toBe(false)
  await expect(kit.runs.retry(letter?.runId as string)).rejects.toMatchObject(refused)
  expect((await kit.deadLetters.list()).items).toHaveLength(1)
  await kit.jobs.cancel(second.jobId)
  await kit.runs.retry(letter?.runId as string)
  expect(await kit.jobs.create(job())).toMatchObject({ jobId: first.jobId, deduplicated: true })
})

test('a bulk redrive leaves those alone whose key another job has', async () => {
  const { kit } = await setup()
  const own = await kit.tenant('default')
  await record(kit, 'work', () => {
    throw new Error('no')
  })
  await kit.jobs.create(job({}, { retry: { maxAttempts: 1 } }))
  await kit.settle()
  await kit.jobs.create(job({}, { delay: '1h' }))
  expect(await own.deadLetters.redrive({ filter: {} })).toEqual({ count: 0, runIds: [] })
})

test('the key of a job cannot be changed; what counts, and what happens then, can', async () => {
  const { kit } = await setup()
  const { jobId } = await kit.jobs.create(job({}, { delay: '1h' }))
  await expect(kit.jobs.update(jobId, { unique: { key: 'other' } })).rejects.toMatchObject({ code: 'invalid_job' })
  expect(await kit.jobs.update(jobId, { unique: { key: 'k', onConflict: 'reject' } })).toEqual({ version: 2 })
  expect(await kit.jobs.update(jobId, { payload: 5 })).toEqual({ version: 3 })
  expect((await kit.jobs.create(job())).jobId).toBe(jobId)
})

test.each([
  [{ key: '' }, 'unique.key'],
  [{ key: 'x'.repeat(257) }, 'unique.key'],
  [{ key: 'a\0b' }, 'unique.key'],
  [{ key: 'a', while: 'running' }, 'unique.while'],
  [{ key: 'a', onConflict: 'drop' }, 'unique.onConflict'],
  [{ key: 'a', ttl: '1h' }, 'unique.ttl'],
  ['a', 'unique'],
])('%j is no unique key, and nothing is stored', async (unique, path) => {
  const { kit, query } = await setup()
  const wrong = { queue: 'work', payload: 1, unique } as never
  await expect(kit.jobs.create(wrong)).rejects.toMatchObject({ code: 'invalid_job', complaints: [{ path }] })
  expect(await query('select from keys')).toEqual([])
})

test('records of keys whose jobs are over are forgotten after a day, others are not', async () => {
  const { kit, query } = await setup()
  await kit.jobs.create({ queue: 'work', payload: 1, unique: { key: 'over' } })
  await record(kit, 'work')
  await kit.settle()
  const kept = await kit.jobs.create(job({}, { delay: '3d' }))
  await kit.pass(2 * 24 * 60 * MINUTE)
  await kit.purge()
  expect(await query('select key from keys')).toEqual([{ key: 'k' }])
  expect(await kit.jobs.create(job())).toMatchObject({ jobId: kept.jobId })
})
