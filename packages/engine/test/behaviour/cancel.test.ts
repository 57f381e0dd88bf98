import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { at, HOUR, held, MINUTE, record, SECOND, START, startKit } from './kit.ts'

const leave = { running: 'leave' } as const

test('a ready run that is canceled leaves a history row with the number 0', async () => {
  const { kit, query } = await startKit()
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  const runId = runIdOf(jobId, START)
  expect(await kit.runs.cancel(runId)).toEqual({ status: 'canceled' })
  const seen = await record(kit, 'emails')
  await kit.pass(HOUR)
  expect(seen).toEqual([])
  expect(await kit.runs.get(runId)).toMatchObject({
    status: 'canceled',
    attempts: [{ number: 0, counted: false, status: 'canceled', leasedAt: null, startedAt: null }],
  })
  expect(await query('select final from attempts')).toEqual([{ final: true }])
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'canceled' })
  await expect(kit.runs.cancel(runId)).rejects.toMatchObject({ code: 'already_finished' })
})

test('a run in backoff that is canceled is gone, with its attempts kept and a last row that has the next number', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails', () => {
    throw new Error('down')
  })
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.settle()
  const runId = runIdOf(jobId, START)
  expect(await kit.runs.get(runId)).toMatchObject({ status: 'waiting', failures: 1 })
  expect(await kit.runs.cancel(runId)).toEqual({ status: 'canceled' })
  await kit.pass(HOUR)
  expect(seen).toHaveLength(1)
  const run = await kit.runs.get(runId)
  expect(run).toMatchObject({ status: 'canceled', attempt: 1, failures: 1 })
  expect(run?.attempts).toMatchObject([
    { number: 1, status: 'failed' },
    { number: 2, status: 'canceled', counted: false, leasedAt: null, holder: null },
  ])
  expect((await kit.deadLetters.list()).items).toEqual([])
})

test('a paused one-off that is canceled is canceled, and can be neither resumed nor paused again', async () => {
  const { kit } = await startKit()
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, delay: '10m' })
  await kit.jobs.pause(jobId)
  expect(await kit.jobs.cancel(jobId)).toEqual({ status: 'canceled' })
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'canceled', pausedAt: null })
  await expect(kit.jobs.resume(jobId)).rejects.toMatchObject({ code: 'already_finished' })
  await expect(kit.jobs.pause(jobId)).rejects.toMatchObject({ code: 'already_finished' })
})

test('a delayed job that is canceled never runs and leaves a history row with the number 0', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails')
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, delay: '10m' })
  expect(await kit.jobs.cancel(jobId)).toEqual({ status: 'canceled' })
  await kit.pass(HOUR)
  expect(seen).toEqual([])
  expect(await kit.runs.get(runIdOf(jobId, START + 10 * MINUTE))).toMatchObject({
    status: 'canceled',
    attempts: [{ number: 0, counted: false }],
  })
  expect(await kit.jobs.cancel(jobId)).toEqual({ status: 'canceled' })
})

test('a job that has succeeded cannot be canceled', async () => {
  const { kit } = await startKit()
  await record(kit, 'emails')
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.settle()
  await expect(kit.jobs.cancel(jobId)).rejects.toMatchObject({ code: 'already_finished' })
})

test('a running run that is canceled is told at once, and ends as canceled', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails', (run) => {
    return new Promise((_, reject) => run.signal.addEventListener('abort', () => reject(run.signal.reason)))
  })
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.settle(leave)
  const runId = runIdOf(jobId, START)
  expect(await kit.runs.cancel(runId)).toEqual({ status: 'canceling' })
  await kit.pass(HOUR)
  expect(seen).toHaveLength(1)
  expect(await kit.runs.get(runId)).toMatchObject({
    status: 'canceled',
    attempts: [{ number: 1, status: 'canceled', failureClass: 'canceled' }],
  })
})

test('a running run whose handler does not stop is closed as canceled after the grace', async () => {
  const { kit } = await startKit({ cancelGraceMs: 5_000 })
  const { gate, letGo } = held()
  const seen = await record(kit, 'emails', () => gate)
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.settle(leave)
  const runId = runIdOf(jobId, START)
  await kit.runs.cancel(runId)
  await kit.pass(4 * SECOND, leave)
  expect(await kit.runs.get(runId)).toMatchObject({ status: 'running', cancelRequested: true })
  await kit.pass(SECOND, leave)
  expect(await kit.runs.get(runId)).toMatchObject({ status: 'canceled', finishedAt: at(5 * SECOND) })
  letGo()
  await kit.pass(HOUR)
  expect(seen).toHaveLength(1)
  expect((await kit.runs.get(runId))?.attempts).toHaveLength(1)
})

test('canceling a recurring job ends its future and its live runs', async () => {
  const { kit, query } = await startKit()
  const { jobId } = await kit.jobs.create({ queue: 'emails', cron: '*/10 * * * *', payload: 1, overlap: 'allow' })
  await kit.pass(15 * MINUTE)
  expect(await query('select from runs')).toHaveLength(2)
  expect(await kit.jobs.cancel(jobId)).toEqual({ status: 'canceled' })
  const seen = await record(kit, 'emails')
  await kit.pass(HOUR)
  expect(seen).toEqual([])
  expect(await query('select number from attempts where final')).toEqual([{ number: 0 }, { number: 0 }])
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'canceled', nextRunAt: null })
  expect(await kit.jobs.cancel(jobId)).toEqual({ status: 'canceled' })
})

test('canceling a job with running: finish lets its live run finish', async () => {
  const { kit } = await startKit()
  const { gate, letGo } = held()
  let aborted = false
  await kit.handle('emails', (run) => {
    run.signal.addEventListener('abort', () => {
      aborted = true
    })
    return gate
  })
  const { jobId } = await kit.jobs.create({ queue: 'emails', cron: '*/10 * * * *', payload: 1 })
  await kit.settle(leave)
  await kit.jobs.cancel(jobId, { running: 'finish' })
  await kit.pass(MINUTE, leave)
  letGo()
  await kit.settle()
  expect(aborted).toBe(false)
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({ status: 'succeeded' })
})

test('what does not exist cannot be canceled', async () => {
  const { kit } = await startKit()
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  const other = `${jobId.slice(0, -4)}ffff`
  await expect(kit.jobs.cancel(other)).rejects.toMatchObject({ code: 'not_found' })
  await expect(kit.runs.cancel(runIdOf(other, START))).rejects.toMatchObject({ code: 'not_found' })
  await expect(kit.jobs.cancel('nonsense')).rejects.toMatchObject({ code: 'invalid_argument' })
})
