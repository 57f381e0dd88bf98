import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry, silentLogger } from '../../src/index.ts'
import { createDatabase, today } from '../database.ts'

interface End {
  outcome: number
  error: string | null
}

/** A node whose database refuses what the test says. */
async function setup({ leaseMs = 30_000 } = {}) {
  const { schema, query, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  const errors: string[] = []
  const logger = { ...silentLogger, error: (message: string) => void errors.push(message) }
  const belfry = await Belfry.start({ database: inject('postgres'), schema, logger, leaseMs })
  onTestFinished(() => belfry.stop())
  const performed: string[] = []
  const work = (handler: (payload: unknown) => unknown = () => {}) =>
    belfry.handle(
      'work',
      (run) => {
        performed.push(run.id)
        return handler(run.payload)
      },
      { concurrency: 100 },
    )
  /** Each `event` on a row that is `when` fails so. */
  const refuse = async (event: string, code: string, when = 'true') => {
    await query(`create or replace function refuse() returns trigger language plpgsql as $$ begin
      if ${when} then raise exception 'refused by the test' using errcode = '${code}'; end if;
      return case tg_op when 'DELETE' then old else new end; end $$`)
    await query(`create trigger refuse before ${event} for each row execute function refuse()`)
  }
  const allow = () => query('drop function if exists refuse cascade')
  onTestFinished(allow as never)
  const ends = (jobId?: string) =>
    query<End>('select outcome, error from attempts where final and ($1::uuid is null or job_id = $1)', [jobId ?? null])
  return { belfry, query, errors, performed, work, refuse, allow, ends }
}

const SUCCEEDED = 1
const jobs = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ queue: 'work', payload: i, retry: { maxAttempts: 1 } }))

test.each([
  ['53100', 'the disk is full'],
  ['25006', 'the database is read-only'],
  ['58030', 'the disk fails'],
  ['40P01', 'each finish meets another transaction'],
  ['40001', 'nothing can be serialized'],
  ['55P03', 'locks cannot be had'],
])('ends wait while the database refuses them with %s: %s', async (code) => {
  const t = await setup()
  await t.refuse('delete on runs', code)
  t.work()
  await t.belfry.jobs.createMany(jobs(300))
  await t.belfry.jobs.createMany(jobs(100).map((job) => ({ ...job, delivery: 'at_most_once' })))
  await expect.poll(() => t.performed.length).toBe(400)
  expect(await t.ends()).toEqual([])
  await t.allow()
  await expect.poll(() => t.query('select from runs')).toEqual([])
  expect((await t.ends()).filter(({ outcome }) => outcome === SUCCEEDED)).toHaveLength(400)
  expect(new Set(t.performed).size).toBe(t.performed.length)
  expect(t.errors).toEqual([])
})

test('an end that alone is refused, again and again while others pass, is recorded as a failure with the reason', async () => {
  const t = await setup()
  t.work((payload) => payload)
  const [faulty] = await t.belfry.jobs.createMany([{ queue: 'later', payload: 'faulty' }])
  await t.refuse('insert on attempts', '22012', `new.result::text like '%faulty%'`)
  t.belfry.handle('later', (run) => run.payload)
  const others = setInterval(() => void t.belfry.jobs.createMany(jobs(3)), 20)
  onTestFinished(() => clearInterval(others))
  await expect.poll(() => t.ends(faulty?.jobId)).toHaveLength(1)
  clearInterval(others)
  const [end] = await t.ends(faulty?.jobId)
  expect(end?.outcome).not.toBe(SUCCEEDED)
  expect(end?.error).toBe('its end could not be written: refused by the test')
  expect(await t.query('select job_id, error from dead_letters')).toEqual([
    { job_id: faulty?.jobId, error: 'its end could not be written: refused by the test' },
  ])
  expect(t.errors).toEqual(['the end of an attempt cannot be written'])
  await expect.poll(() => t.query('select from runs')).toEqual([])
  expect((await t.ends()).filter(({ outcome }) => outcome !== SUCCEEDED)).toHaveLength(1)
})

test('an end of which not even a failure can be written is left to the reaper, and the others pass', async () => {
  const t = await setup({ leaseMs: 1_000 })
  t.work()
  const [faulty] = await t.belfry.jobs.createMany([{ queue: 'later', payload: 1, retry: { maxAttempts: 2 } }])
  await t.refuse('delete on runs', '22012', `old.job_id = '${faulty?.jobId}'`)
  t.belfry.handle('later', () => {})
  const others = setInterval(() => void t.belfry.jobs.createMany(jobs(3)), 20)
  onTestFinished(() => clearInterval(others))
  const attempts = () => t.query('select error from attempts where job_id = $1', [faulty?.jobId])
  await expect.poll(attempts).toEqual([{ error: 'the worker did not renew its lease' }])
  clearInterval(others)
  await t.allow()
  await expect.poll(() => t.query('select from runs')).toEqual([])
  expect((await t.ends()).filter(({ outcome }) => outcome !== SUCCEEDED)).toEqual([])
})

test('while every end is refused none is given up', async () => {
  const t = await setup()
  await t.refuse('delete on runs', '42501')
  t.work()
  await t.belfry.jobs.createMany(jobs(20))
  await expect.poll(() => t.errors.length).toBe(20)
  await t.allow()
  await expect.poll(() => t.query('select from runs')).toEqual([])
  expect((await t.ends()).filter(({ outcome }) => outcome === SUCCEEDED)).toHaveLength(20)
})
