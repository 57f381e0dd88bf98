import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { at, HOUR, MINUTE, record, SECOND, START, startKit } from './kit.ts'

const FIXED = { type: 'fixed', initial: '1m', jitter: 0 } as const

test('a failed attempt is tried again after its backoff, and the last failure leaves a dead letter', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails', () => {
    throw new Error('mailbox full')
  })
  const backoff = { type: 'exponential', initial: '10s', factor: 2, jitter: 0 } as const
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, retry: { maxAttempts: 3, backoff } })
  await kit.pass(HOUR)
  expect(seen.map((run) => [run.attempt, run.failures, run.at])).toEqual([
    [1, 0, at(0)],
    [2, 1, at(10 * SECOND)],
    [3, 2, at(30 * SECOND)],
  ])
  const runId = runIdOf(jobId, START)
  expect(await kit.runs.get(runId)).toMatchObject({
    status: 'failed',
    attempt: 3,
    failures: 3,
    failureClass: 'handler_error',
    error: 'Error: mailbox full',
    attempts: [{ number: 1, counted: true, status: 'failed' }, { number: 2 }, { number: 3, counted: true }],
  })
  expect((await kit.deadLetters.list()).items).toMatchObject([{ runId, failureClass: 'handler_error' }])
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'failed' })
})

test('redriving opens the same run: its id stays, attempt numbers go on, failures start at 0', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails', () => {
    if (kit.now() < at(HOUR)) throw new Error('down')
  })
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, retry: { maxAttempts: 2, backoff: FIXED } })
  await kit.pass(HOUR)
  const runId = runIdOf(jobId, START)
  expect(await kit.deadLetters.redrive(runId)).toEqual({ runId })
  expect(await kit.runs.get(runId)).toMatchObject({ status: 'ready', failures: 0, attempt: 2 })
  await kit.settle()
  expect(seen.map((run) => [run.id, run.attempt, run.failures])).toEqual([
    [runId, 1, 0],
    [runId, 2, 1],
    [runId, 3, 0],
  ])
  expect(await kit.runs.get(runId)).toMatchObject({ status: 'succeeded', attempt: 3 })
  expect((await kit.deadLetters.list()).items).toEqual([])
})

test('a run that succeeded or is still alive cannot be retried', async () => {
  const { kit } = await startKit()
  await record(kit, 'emails')
  const done = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.settle()
  await expect(kit.runs.retry(runIdOf(done.jobId, START))).rejects.toMatchObject({ code: 'not_retryable' })
  const alive = await kit.jobs.create({ queue: 'nobody', payload: 1 })
  await expect(kit.runs.retry(runIdOf(alive.jobId, START))).rejects.toMatchObject({ code: 'not_retryable' })
  await expect(kit.runs.retry(runIdOf(alive.jobId, START + 1))).rejects.toMatchObject({ code: 'not_found' })
})

test('of two who redrive the same dead letter one opens the run and the other is told', async () => {
  const { kit, query } = await startKit()
  await record(kit, 'emails', (run) => run.fail('no such user'))
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.settle()
  const runId = runIdOf(jobId, START)
  const both = await Promise.allSettled([kit.runs.retry(runId), kit.runs.retry(runId)])
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(await query('select from runs')).toHaveLength(1)
})

test('a snoozed run comes again and nothing is counted', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails', (run) => (run.attempt < 3 ? run.snooze('2m') : undefined))
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, retry: { maxAttempts: 1 } })
  await kit.pass(HOUR)
  expect(seen.map((run) => [run.attempt, run.failures, run.at])).toEqual([
    [1, 0, at(0)],
    [2, 0, at(2 * MINUTE)],
    [3, 0, at(4 * MINUTE)],
  ])
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({
    status: 'succeeded',
    failures: 0,
    attempts: [{ status: 'snoozed', counted: false }, { status: 'snoozed' }, { status: 'succeeded', counted: true }],
  })
})

test('retryIn wins over the backoff and counts as a failure', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails', (run) => {
    if (run.attempt < 3) throw run.retryIn('7m', 'busy')
  })
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, retry: { maxAttempts: 3, backoff: FIXED } })
  await kit.pass(HOUR)
  expect(seen.map((run) => [run.attempt, run.failures, run.at])).toEqual([
    [1, 0, at(0)],
    [2, 1, at(7 * MINUTE)],
    [3, 2, at(14 * MINUTE)],
  ])
  expect((await kit.runs.get(runIdOf(jobId, START)))?.attempts[0]).toMatchObject({ status: 'failed', error: 'busy' })
})

test('a handler that fails for good is not asked again', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails', (run) => run.fail('no such user'))
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.pass(HOUR)
  expect(seen).toHaveLength(1)
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({ status: 'failed', error: 'no such user' })
  expect((await kit.deadLetters.list()).items).toHaveLength(1)
})

test('a handler that cancels ends the run as canceled, without a dead letter', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails', (run) => {
    throw run.cancel('unsubscribed')
  })
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.pass(HOUR)
  expect(seen).toHaveLength(1)
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({ status: 'canceled', error: 'unsubscribed' })
  expect((await kit.deadLetters.list()).items).toEqual([])
})

test('no attempt begins after retry.maxAge', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails', () => {
    throw new Error('down')
  })
  await kit.jobs.create({ queue: 'emails', payload: 1, retry: { maxAttempts: 100, backoff: FIXED, maxAge: '150s' } })
  await kit.pass(HOUR)
  expect(seen.map((run) => run.at)).toEqual([at(0), at(MINUTE), at(2 * MINUTE)])
})

test('what an attempt leaves at a checkpoint reaches the next one, and goes with the run', async () => {
  const { kit, query } = await startKit()
  const found: unknown[] = []
  await record(kit, 'import', async (run) => {
    found.push(await run.checkpoint())
    await run.checkpoint({ line: run.attempt * 100 })
    if (run.attempt < 3) throw new Error('cut off')
  })
  await kit.jobs.create({ queue: 'import', payload: 1, retry: { backoff: FIXED } })
  await kit.pass(HOUR)
  expect(found).toEqual([undefined, { line: 100 }, { line: 200 }])
  expect(await query('select from checkpoints')).toEqual([])
})

test('what a handler logs is kept with its attempt', async () => {
  const { kit } = await startKit()
  await record(kit, 'import', (run) => {
    run.log('begins')
    run.log(`attempt ${run.attempt} looks bad`, 'warn')
    if (run.attempt === 1) throw new Error('cut off')
  })
  const { jobId } = await kit.jobs.create({ queue: 'import', payload: 1, retry: { backoff: FIXED } })
  await kit.pass(HOUR)
  expect(await kit.runs.logs(runIdOf(jobId, START))).toEqual([
    { attempt: 1, line: 1, level: 'info', message: 'begins', loggedAt: at(0) },
    { attempt: 1, line: 2, level: 'warn', message: 'attempt 1 looks bad', loggedAt: at(0) },
    { attempt: 2, line: 1, level: 'info', message: 'begins', loggedAt: at(MINUTE) },
    { attempt: 2, line: 2, level: 'warn', message: 'attempt 2 looks bad', loggedAt: at(MINUTE) },
  ])
})
