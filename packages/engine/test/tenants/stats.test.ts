import { expect, test } from 'vitest'
import { HOUR, MINUTE, record } from '../behaviour/kit.ts'
import { startTenants } from './setup.ts'

const NOTHING = { succeeded: 0, failed: 0, canceled: 0, lost: 0, skipped: 0, retried: 0, isComplete: true }

test('a tenant that has nothing is told so', async () => {
  const t = await startTenants()
  expect(await t.other.stats.get()).toEqual({
    runs: { ready: 0, running: 0, waiting: 0, oldestReadyMs: null, isComplete: true, queues: [] },
    lastHour: NOTHING,
    lastDay: NOTHING,
    deadLetters: { count: 0, isComplete: true },
    nextDue: { at: null, isComplete: true },
  })
})

test.each(['own', 'other'] as const)("counts are of the tenant's own runs, by state and queue (%s)", async (who) => {
  const t = await startTenants()
  const [view, stranger] = who === 'own' ? [t.own, t.other] : [t.other, t.own]
  const tenant = who === 'own' ? 'default' : 'other'
  await view.jobs.createMany(Array.from({ length: 3 }, () => ({ queue: 'idle' })))
  await view.jobs.create({ queue: 'more' })
  const fail = () => {
    throw new Error('no')
  }
  await t.kit.handle('fails', fail, { tenant })
  await view.jobs.create({ queue: 'fails', retry: { backoff: { type: 'fixed', initial: '1h', jitter: 0 } } })
  await view.jobs.create({ queue: 'fails', retry: { maxAttempts: 1 } })
  await view.jobs.create({ queue: 'idle', delay: '2h' })
  await view.jobs.create({ queue: 'idle', cron: '0 * * * *' })
  const paused = await view.jobs.create({ queue: 'idle', delay: '1m' })
  await view.jobs.pause(paused.jobId)
  await t.kit.settle()
  const { nextRunAt } = await view.jobs.create({ queue: 'idle', delay: '5m' })
  await stranger.jobs.create({ queue: 'idle' })
  await stranger.jobs.create({ queue: 'idle', delay: '1s' })
  t.kit.clock.advance(500)
  const stats = await view.stats.get()
  expect(stats.runs).toEqual({
    ...{ ready: 5, running: 0, waiting: 1, oldestReadyMs: 500, isComplete: true },
    queues: [
      { name: 'idle', ready: 4, running: 0, waiting: 0 },
      { name: 'fails', ready: 0, running: 0, waiting: 1 },
      { name: 'more', ready: 1, running: 0, waiting: 0 },
    ],
  })
  expect(stats.lastHour).toEqual({ ...NOTHING, failed: 1, retried: 1 })
  expect(stats.deadLetters).toEqual({ count: 1, isComplete: true })
  expect(stats.nextDue).toEqual({ at: nextRunAt, isComplete: true })
})

test('what ended is counted for an hour, and for a day', async () => {
  const t = await startTenants()
  await record(t.kit, 'mail')
  await t.own.jobs.create({ queue: 'mail' })
  const { jobId } = await t.own.jobs.create({ queue: 'idle', delay: '1m' })
  await t.own.jobs.cancel(jobId)
  await t.kit.settle()
  t.kit.clock.advance(50 * MINUTE)
  await t.own.jobs.create({ queue: 'mail' })
  await t.kit.settle()
  const counts = async () => {
    const { lastHour, lastDay } = await t.own.stats.get()
    return [lastHour.succeeded, lastHour.canceled, lastDay.succeeded, lastDay.canceled]
  }
  expect(await counts()).toEqual([2, 1, 2, 1])
  t.kit.clock.advance(11 * MINUTE)
  expect(await counts()).toEqual([1, 0, 2, 1])
  t.kit.clock.advance(23 * HOUR)
  expect(await counts()).toEqual([0, 0, 1, 0])
})

test('a count that reaches its bound says that there is more', async () => {
  const t = await startTenants()
  const columns = `nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority, cause, delivery, one_off`
  await t.query(
    `insert into dead_letters (${columns}) select now(), now(), now(), gen_random_uuid(), 2, 1, 1, 1, 1, 1, 0, 5, 0, 0, true from generate_series(1, 10001)`,
  )
  await t.query(
    `insert into timers (due_at, nominal_at, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, shard, priority, overlap, delivery)
     select now() + n * interval '1 s', now(), gen_random_uuid(), 1, 1, 2, 1, 1, 0, 0, 5, 0, 0 from generate_series(1, 20001) n`,
  )
  const stats = await t.other.stats.get()
  expect(stats.deadLetters).toEqual({ count: 10_000, isComplete: false })
  expect(stats.nextDue).toEqual({ at: expect.any(Date), isComplete: false })
  expect((await t.own.stats.get()).deadLetters).toEqual({ count: 0, isComplete: true })
})
