import { expect, inject, onTestFinished, test } from 'vitest'
import { dropExpired } from '../../src/history/drop-expired.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { Database } from '../../src/store/database.ts'
import { startTestKit } from '../../src/testing/index.ts'
import { createDatabase } from '../database.ts'
import { HOUR, record } from './kit.ts'

const DAY = 24 * HOUR

/** A kit whose history is kept for so many days. */
async function setup(historyDays: number) {
  const { schema, query, drop } = await createDatabase({ fresh: true })
  onTestFinished(drop)
  const database = inject('postgres')
  const kit = await startTestKit({ database, schema, seed: 1, historyDays })
  onTestFinished(() => kit.stop())
  const db = new Database({ connection: database, schema, logger: silentLogger })
  onTestFinished(() => db.close())
  /** Time passes, and what a node does every hour is done at its end. */
  const pass = async (ms: number) => {
    await kit.pass(ms)
    await dropExpired({ db, clock: kit.clock, logger: silentLogger, retentionDays: historyDays })
    await kit.purge()
  }
  const broken = new Set<unknown>()
  const seen = await record(kit, 'work', ({ payload }) => {
    if (broken.has(payload)) throw new Error('broken')
  })
  return { kit, query, pass, broken, seen: () => seen.map(({ payload }) => payload) }
}

const job = { queue: 'work', payload: 'p', retry: { maxAttempts: 1 } }

test('a one-off that ran long after it was created is found as long as its history is kept, and then no more', async () => {
  const t = await setup(3)
  const { jobId } = await t.kit.jobs.create({ ...job, delay: '95h' })
  await t.pass(95 * HOUR)
  expect(t.seen()).toEqual(['p'])
  for (let hours = 0; hours < 72; hours += 6) {
    await t.pass(6 * HOUR)
    expect((await t.kit.jobs.get(jobId))?.status, `after ${hours + 6} hours`).toBe('succeeded')
    expect((await t.kit.runs.list({ jobId })).items).toHaveLength(1)
  }
  await t.pass(2 * DAY)
  expect(await t.kit.jobs.get(jobId)).toBeNull()
  expect(await t.query('select from specs')).toEqual([])
})

test('a batch, and the payload of a run of its own, are kept as long as the history of their last run', async () => {
  const t = await setup(3)
  t.broken.add('own')
  const { batchId, jobs } = await t.kit.batches.create([{ ...job, delay: '95h' }])
  const { runId } = await t.kit.jobs.trigger(String(jobs[0]?.jobId), { payload: 'own' })
  await t.pass(95 * HOUR)
  t.broken.clear()
  await t.kit.runs.retry(runId)
  await t.pass(70 * HOUR)
  expect(await t.kit.batches.get(batchId)).toMatchObject({ succeeded: 1, open: 0 })
  expect(await t.kit.runs.get(runId)).toMatchObject({ status: 'succeeded', payload: 'own' })
  await t.pass(2 * DAY)
  expect(await t.kit.batches.get(batchId)).toBeNull()
  expect(await t.query('select from run_payloads')).toEqual([])
})

test('what of a day is still to come, dead or awaited outlives it in one piece, and goes when it is over', async () => {
  const t = await setup(1)
  t.broken.add('dead')
  const later = await t.kit.jobs.create({ ...job, payload: 'later', delay: '10d' })
  const dead = await t.kit.jobs.create({ ...job, payload: 'dead' })
  await t.kit.jobs.create({ ...job, payload: 'over' })
  await t.pass(5 * DAY)
  expect(await t.query('select job_id as id from specs order by job_id')).toEqual(
    [{ id: later.jobId }, { id: dead.jobId }].sort((a, b) => (a.id < b.id ? -1 : 1)),
  )
  expect(await t.query('select tableoid::regclass::text as name from specs')).toEqual(
    Array(2).fill({ name: 'specs_kept' }),
  )
  t.broken.clear()
  const [letter] = (await (await t.kit.tenant('default')).deadLetters.list()).items
  await t.kit.runs.retry(String(letter?.runId))
  await t.pass(4 * DAY)
  expect(await t.query('select job_id as id from specs')).toEqual([{ id: later.jobId }])
  await t.pass(DAY)
  expect((await t.kit.jobs.get(later.jobId))?.status).toBe('succeeded')
  await t.pass(3 * DAY)
  expect(await t.query('select from specs')).toEqual([])
})

test('a parent that is redriven after the history of its children has expired opens them all the same', async () => {
  const t = await setup(2)
  t.broken.add('p')
  const [p, c, g] = await t.kit.jobs.createMany([
    { ...job, ref: 'p' },
    { ...job, ref: 'c', payload: 'c', after: { jobs: ['p'] } },
    { ...job, ref: 'g', payload: 'g', queue: 'other', after: { jobs: ['c'] } },
  ])
  await t.kit.settle()
  expect((await t.kit.jobs.get(String(g?.jobId)))?.status).toBe('canceled')
  await t.pass(6 * DAY)
  expect((await t.kit.runs.list({ jobId: String(c?.jobId) })).items).toEqual([])
  t.broken.clear()
  const other = await record(t.kit, 'other')
  const own = await t.kit.tenant('default')
  expect(await own.deadLetters.redrive({ filter: {} })).toMatchObject({ count: 1 })
  await t.kit.settle()
  expect([...t.seen(), ...other.map(({ payload }) => payload)]).toEqual(['p', 'p', 'c', 'g'])
  for (const one of [p, c, g]) expect((await t.kit.jobs.get(String(one?.jobId)))?.status).toBe('succeeded')
  await t.pass(6 * DAY)
  expect(await t.query('select from edges')).toEqual([])
  expect(await t.query('select from specs')).toEqual([])
})

test('an idempotency key whose job was dropped with its history is free, also for another request', async () => {
  const t = await setup(1)
  const keyed = { ...job, idempotencyKey: 'k', idempotencyTtl: '30d' }
  const first = await t.kit.jobs.create(keyed)
  await t.kit.jobs.create({ ...keyed, idempotencyKey: 'l' })
  await t.pass(DAY)
  expect(await t.kit.jobs.create(keyed)).toMatchObject({ jobId: first.jobId, deduplicated: true })
  await t.pass(3 * DAY)
  expect(await t.kit.jobs.get(first.jobId)).toBeNull()
  const other = { ...keyed, payload: 'other', delay: '1h' }
  const again = await t.kit.jobs.create(other)
  expect(again.deduplicated).toBe(false)
  expect((await t.kit.jobs.get(again.jobId))?.payload).toBe('other')
  expect(await t.kit.jobs.create(other)).toMatchObject({ jobId: again.jobId, deduplicated: true })
  await expect(t.kit.jobs.create(keyed)).rejects.toMatchObject({ code: 'idempotency_mismatch' })
  const twice = { ...other, idempotencyKey: 'l' }
  const [one, same] = await t.kit.jobs.createMany([twice, twice, job])
  expect(same).toMatchObject({ jobId: one?.jobId, deduplicated: true })
  expect(await t.kit.jobs.get(String(one?.jobId))).not.toBeNull()
})
