import { expect, inject, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { startTestKit } from '../../src/testing/index.ts'
import { at, HOUR, held, MINUTE, record, SECOND, START, startKit } from './kit.ts'

const leave = { running: 'leave' } as const

test('a lease that nobody renewed makes the run ready at once, and counts', async () => {
  const { kit } = await startKit()
  const { gate, letGo } = held()
  const seen = await record(kit, 'emails', (run) => (run.attempt === 1 ? gate : undefined))
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, retry: { backoff: { initial: '1h' } } })
  await kit.settle(leave)
  kit.clock.advance(30 * SECOND)
  expect(await kit.reap()).toBe(1)
  const runId = runIdOf(jobId, START)
  expect(await kit.runs.get(runId)).toMatchObject({ status: 'ready', failures: 1, failureClass: 'lease_expired' })
  await kit.settle(leave)
  expect(seen.map((run) => [run.attempt, run.failures, run.at])).toEqual([
    [1, 0, at(0)],
    [2, 1, at(30 * SECOND)],
  ])
  letGo()
  await kit.settle()
  expect(await kit.runs.get(runId)).toMatchObject({
    status: 'succeeded',
    attempts: [
      { number: 1, status: 'failed', counted: true },
      { number: 2, status: 'succeeded' },
    ],
  })
})

test('a lease lives as long as its handler is at work and its node renews it', async () => {
  const { kit } = await startKit()
  const { gate, letGo } = held()
  const seen = await record(kit, 'emails', () => gate)
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, timeout: '1h' })
  await kit.pass(10 * MINUTE, leave)
  letGo()
  await kit.settle()
  expect(seen).toHaveLength(1)
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({ status: 'succeeded', attempt: 1, failures: 0 })
})

test('an attempt that outlives its timeout is told, fails as timeout, and is tried again after its backoff', async () => {
  const { kit } = await startKit()
  const reasons: unknown[] = []
  const seen = await record(kit, 'emails', (run) =>
    run.attempt > 1
      ? undefined
      : new Promise((_, reject) => {
          run.signal.addEventListener('abort', () => {
            reasons.push(run.signal.reason)
            reject(new Error('gave up'))
          })
        }),
  )
  const retry = { backoff: { type: 'fixed', initial: '1m', jitter: 0 } } as const
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, timeout: '40s', retry })
  await kit.pass(HOUR, leave)
  expect(reasons).toEqual(['timeout'])
  expect(seen.map((run) => run.at)).toEqual([at(0), at(100 * SECOND)])
  expect((await kit.runs.get(runIdOf(jobId, START)))?.attempts).toMatchObject([
    { number: 1, status: 'failed', failureClass: 'timeout', counted: true },
    { number: 2, status: 'succeeded' },
  ])
})

test('an attempt whose handler ignores its timeout is closed as timeout, and gives its slot back', async () => {
  const { kit } = await startKit()
  const { gate, letGo } = held()
  await kit.handle('emails', (run) => (run.payload === 'stuck' ? gate : undefined), { concurrency: 1 })
  const stuck = await kit.jobs.create({ queue: 'emails', payload: 'stuck', timeout: '20s', retry: { maxAttempts: 1 } })
  await kit.settle(leave)
  const other = await kit.jobs.create({ queue: 'emails', payload: 'other' })
  await kit.pass(MINUTE, leave)
  expect(await kit.runs.get(runIdOf(stuck.jobId, START))).toMatchObject({ status: 'failed', failureClass: 'timeout' })
  expect(await kit.jobs.get(other.jobId)).toMatchObject({ status: 'succeeded' })
  letGo()
  await kit.settle()
  expect((await kit.runs.get(runIdOf(stuck.jobId, START)))?.attempts).toHaveLength(1)
})

test.each([
  ['its lease expired', '1h', 'lease_expired'],
  ['its time was up', '20s', 'timeout'],
])('a run of at_most_once ends as lost when %s, and never runs twice', async (_, timeout, failureClass) => {
  const { kit } = await startKit()
  const { gate, letGo } = held()
  const seen = await record(kit, 'payments', () => gate)
  const { jobId } = await kit.jobs.create({ queue: 'payments', payload: 1, delivery: 'at_most_once', timeout })
  await kit.settle(leave)
  if (failureClass === 'timeout') await kit.pass(30 * SECOND, leave)
  else {
    // Nothing keeps its lease while time passes.
    kit.clock.advance(30 * SECOND)
    await kit.reap()
  }
  letGo()
  await kit.pass(HOUR)
  expect(seen).toHaveLength(1)
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({ status: 'lost', attempt: 1, failureClass })
  expect((await kit.deadLetters.list()).items).toMatchObject([{ jobId, failureClass }])
})

test('a run of at_most_once that fails by itself is tried again: its outcome is known', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'payments', (run) => {
    if (run.attempt === 1) throw new Error('refused')
  })
  await kit.jobs.create({ queue: 'payments', payload: 1, delivery: 'at_most_once' })
  await kit.pass(HOUR)
  expect(seen.map((run) => run.attempt)).toEqual([1, 2])
})

test('a node that stops gives back what it still runs, and no failure is counted', async () => {
  const { kit: keeper, pool } = await startKit()
  const leaving = await startTestKit({ database: inject('postgres'), schema: keeper.schema, seed: 7 })
  let reason: unknown
  await leaving.handle('emails', (run) => {
    return new Promise((_, reject) => {
      run.signal.addEventListener('abort', () => {
        reason = run.signal.reason
        reject(new Error('stopped'))
      })
    })
  })
  const { jobId } = await leaving.jobs.create({ queue: 'emails', payload: 1 })
  await leaving.settle(leave)
  await leaving.stop()
  expect(reason).toBe('stopping')
  const runId = runIdOf(jobId, START)
  expect(await keeper.runs.get(runId)).toMatchObject({
    status: 'waiting',
    failures: 0,
    attempts: [{ number: 1, status: 'released', counted: false }],
  })
  const seen = await record(keeper, 'emails')
  await keeper.settle()
  expect(seen).toMatchObject([{ id: runId, attempt: 2, failures: 0, at: at(0) }])
  expect((await pool.query('select from nodes')).rowCount).toBe(1)
})

test('a handler whose lease was lost is told, and what it returns is not written', async () => {
  const { kit, fabricate } = await startKit()
  const { gate, letGo } = held()
  let aborted: unknown
  await kit.handle('emails', (run) => {
    run.signal.addEventListener('abort', () => {
      aborted = run.signal.reason
    })
    return gate.then(() => 'late')
  })
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, timeout: '1h', retry: { maxAttempts: 1 } })
  await kit.settle(leave)
  await fabricate(`update runs set attempt = attempt + 1, holder = 1, lease_until = lease_until + interval '1 hour'`)
  kit.clock.advance(15 * SECOND)
  await kit.keep()
  expect(aborted).toBe('lease_lost')
  letGo()
  await kit.settle()
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({ status: 'running', attempt: 2, attempts: [] })
})

test('heartbeat says that a lease is lost', async () => {
  const { kit, fabricate } = await startKit()
  const answers: unknown[] = []
  await record(kit, 'emails', async (run) => {
    await run.heartbeat()
    await fabricate('update runs set attempt = attempt + 1, holder = 1')
    answers.push(await run.heartbeat().catch((error: { code: string }) => error.code))
    answers.push(await run.checkpoint(1).catch((error: { code: string }) => error.code))
  })
  await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.settle()
  expect(answers).toEqual(['lease_lost', 'lease_lost'])
})
