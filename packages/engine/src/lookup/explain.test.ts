import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { runIdOf } from '../job/ids.ts'
import { startTestKit } from '../testing/index.ts'

const START = Date.UTC(2026, 0, 5, 8)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const HOURLY = { queue: 'mail', cron: '0 * * * *', payload: 1 }

async function setup(start = START) {
  const database = await createDatabase({ days: { around: start, ahead: 2 } })
  onTestFinished(database.drop)
  const kit = await startTestKit({ database: inject('postgres'), schema: database.schema, start, seed: 1 })
  onTestFinished(() => kit.stop())
  const as = (actor: string) => kit.tenant('default', actor)
  const { jobs } = await as('bk_reader')
  const explain = (jobId: string, at: string) => jobs.explain(jobId, at)
  /** Time that no node sees. */
  const outage = (ms: number) => kit.clock.advance(ms)
  return { kit, as, jobs, explain, outage, query: database.query }
}

test('a run that was performed is told with its attempts, its lateness and its cause', async () => {
  const t = await setup()
  let calls = 0
  await t.kit.handle('mail', () => {
    if (++calls === 1) throw new Error('bounced')
  })
  const { jobId } = await t.jobs.create({ ...HOURLY, retry: { backoff: { type: 'fixed', initial: '1m', jitter: 0 } } })
  await t.kit.pass(90 * MINUTE)
  const found = await t.explain(jobId, '2026-01-05T08:00:00Z')
  expect(found).toMatchObject({
    verdict: 'ran',
    reason: null,
    nominalAt: new Date(START),
    version: 1,
    run: {
      id: runIdOf(jobId, START),
      status: 'succeeded',
      cause: 'schedule',
      attempt: 2,
      failures: 1,
      latenessMs: 0,
      attempts: [
        { number: 1, status: 'failed', failureClass: 'handler_error', error: 'Error: bounced' },
        { number: 2, status: 'succeeded' },
      ],
    },
    nearest: null,
  })
  expect(found.sentence).toBe('The run of 2026-01-05 08:00 UTC succeeded at attempt 2, begun 0 ms after its time.')
})

test('a run that failed for good says after how many failures, and of which class', async () => {
  const t = await setup()
  await t.kit.handle('mail', () => {
    throw new Error('no such mailbox')
  })
  const retry = { maxAttempts: 2, backoff: { type: 'fixed', initial: '1m', jitter: 0 } }
  const { jobId } = await t.jobs.create({ ...HOURLY, retry })
  await t.kit.settle()
  const between = await t.explain(jobId, '2026-01-05T08:00:00Z')
  expect(between).toMatchObject({
    verdict: 'waiting',
    reason: 'backoff',
    waits: { until: new Date(START + MINUTE), after: { attempt: 1, status: 'failed', failureClass: 'handler_error' } },
  })
  expect(between.sentence).toBe(
    'The run of 2026-01-05 08:00 UTC waits until 2026-01-05 08:01 UTC, after attempt 1 failed (handler_error).',
  )
  await t.kit.pass(5 * MINUTE)
  expect((await t.explain(jobId, '2026-01-05T08:00:00Z')).sentence).toBe(
    'The run of 2026-01-05 08:00 UTC failed for good after 2 failures (handler_error, Error: no such mailbox).',
  )
})

test('a run under way is running, and a time that meets it is skipped with its name', async () => {
  const t = await setup()
  let finish = () => {}
  await t.kit.handle('mail', () => new Promise<void>((resolve) => (finish = resolve)))
  const { jobId } = await t.jobs.create({ ...HOURLY, timeout: '5h' })
  await t.kit.settle({ running: 'leave' })
  expect(await t.explain(jobId, '2026-01-05T08:00:00Z')).toMatchObject({
    verdict: 'running',
    run: { status: 'running', attempt: 1, attempts: [] },
    sentence: 'The run of 2026-01-05 08:00 UTC is being performed since 2026-01-05 08:00 UTC, attempt 1.',
  })
  t.kit.clock.advance(HOUR)
  await t.kit.promote()
  await t.kit.settle({ running: 'leave' })
  const first = runIdOf(jobId, START)
  const overlapped = {
    verdict: 'skipped',
    reason: 'overlap',
    skip: { overlappedWith: first, decidedAt: new Date(START + HOUR) },
    sentence: `2026-01-05 09:00 UTC was skipped: the run ${first} was still alive.`,
  }
  expect(await t.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject(overlapped)
  finish()
  await t.kit.settle()
  expect(await t.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject(overlapped)
})

test('of times that were late together the newest runs, and the others say so', async () => {
  const t = await setup()
  await t.kit.handle('mail', () => {})
  const { jobId } = await t.jobs.create({ queue: 'mail', every: '10s', startAt: new Date(START), payload: 1 })
  await t.kit.settle()
  t.outage(35_000)
  await t.kit.pulse()
  await t.kit.settle()
  const newest = runIdOf(jobId, START + 30_000)
  for (const seconds of [10, 20])
    expect(await t.explain(jobId, `2026-01-05T08:00:${seconds}Z`)).toMatchObject({
      verdict: 'skipped',
      reason: 'overlap',
      skip: { overlappedWith: newest, decidedAt: new Date(START + 35_000), count: 2 },
      sentence: `2026-01-05 08:00:${seconds} UTC was skipped: it was late, and of the times that had come by 2026-01-05 08:00:35 UTC the newest ran, ${newest}.`,
    })
  expect(await t.explain(jobId, '2026-01-05T08:00:30Z')).toMatchObject({ verdict: 'ran', run: { id: newest } })
})

test('a ready run tells how many are before it and when its turn comes, if that can be known', async () => {
  const t = await setup()
  const jobs = await t.jobs.createMany([1, 2, 3].map((n) => ({ queue: 'mail', payload: n })))
  const last = jobs[2]?.jobId ?? ''
  expect(await t.explain(last, '2026-01-05T08:00:00Z')).toMatchObject({
    verdict: 'waiting',
    reason: 'ready',
    waits: {
      queue: 'mail',
      ahead: 2,
      isAheadComplete: true,
      expectedStartAt: null,
      expectedStartNote: 'nothing of this queue has ended in the last five minutes',
    },
    sentence:
      'The run of 2026-01-05 08:00 UTC is ready, behind 2 runs of the queue mail; nothing of this queue has ended in the last five minutes.',
  })
  await t.query(
    `insert into attempts (nominal_at, due_at, leased_at, started_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
     select to_timestamp($1), to_timestamp($1), to_timestamp($1), to_timestamp($1), to_timestamp($1), gen_random_uuid(), 1, q.id, 1, 1, 0, 1, 1, true, true
     from queues q cross join generate_series(1, 3) where q.name = 'mail'`,
    [START / 1_000],
  )
  t.kit.clock.advance(2_000)
  const { waits } = await t.explain(last, '2026-01-05T08:00:00Z')
  // Three have ended in five minutes, and it is the third of those that wait.
  expect(waits).toMatchObject({
    ahead: 2,
    expectedStartNote: null,
    expectedStartAt: new Date(START + 2_000 + 5 * MINUTE),
  })
})

test('a paused queue is named with who paused it and why', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ queue: 'mail', payload: 1 })
  await (await t.as('bk_operator')).queues.pause('mail', { reason: 'provider is down' })
  expect(await t.explain(jobId, '2026-01-05T08:00:00Z')).toMatchObject({
    verdict: 'waiting',
    reason: 'queue_paused',
    waits: { ahead: 0, queuePause: { actor: 'bk_operator', reason: 'provider is down' } },
    sentence:
      'The run of 2026-01-05 08:00 UTC is ready, but the queue mail is paused by bk_operator since 2026-01-05 08:00 UTC ("provider is down").',
  })
})

test('a pause is told with its key and reason: while it lasts, after it, and for times to come', async () => {
  const t = await setup()
  await t.kit.handle('mail', () => {})
  const { jobId } = await t.jobs.create(HOURLY)
  await t.kit.pass(90 * MINUTE)
  await (await t.as('bk_night')).jobs.pause(jobId, { reason: 'month end' })
  await t.kit.pass(3 * HOUR)
  const by = { action: 'pause', actor: 'bk_night', reason: 'month end', at: new Date(START + 90 * MINUTE) }
  expect(await t.explain(jobId, '2026-01-05T11:00:00Z')).toMatchObject({
    verdict: 'skipped',
    reason: 'paused',
    by,
    skip: { decidedAt: null },
  })
  const coming = await t.explain(jobId, '2026-01-05T20:00:00Z')
  expect(coming).toMatchObject({ verdict: 'will_run', reason: 'job_paused', by })
  expect(coming.sentence).toBe(
    'It would run at 2026-01-05 20:00 UTC, but the job is paused by bk_night since 2026-01-05 09:30 UTC ("month end").',
  )
  await (await t.as('bk_day')).jobs.resume(jobId)
  await t.kit.pass(HOUR)
  expect(await t.explain(jobId, '2026-01-05T11:00:00Z')).toMatchObject({
    verdict: 'skipped',
    reason: 'paused',
    by,
    skip: { from: new Date(START + 2 * HOUR), to: new Date(START + 4.5 * HOUR + 1), count: 3 },
    sentence:
      '2026-01-05 11:00 UTC was skipped: the job was paused by bk_night since 2026-01-05 09:30 UTC ("month end").',
  })
  expect(await t.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject({ verdict: 'ran' })
  expect(await t.explain(jobId, '2026-01-05T13:00:00Z')).toMatchObject({ verdict: 'ran' })
})

test('what fell into a pause is told also if the job was changed or canceled before anybody resumed it', async () => {
  const t = await setup()
  const changed = await t.jobs.create(HOURLY)
  const canceled = await t.jobs.create(HOURLY)
  t.kit.clock.advance(30 * MINUTE)
  for (const { jobId } of [changed, canceled]) await t.jobs.pause(jobId)
  t.kit.clock.advance(HOUR)
  await t.jobs.update(changed.jobId, { cron: '45 * * * *' })
  t.kit.clock.advance(HOUR)
  await t.jobs.resume(changed.jobId)
  await t.jobs.cancel(canceled.jobId)
  t.kit.clock.advance(HOUR)
  for (const { jobId } of [changed, canceled])
    expect(await t.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject({ verdict: 'skipped', reason: 'paused' })
  expect(await t.explain(changed.jobId, '2026-01-05T09:45:00Z')).toMatchObject({
    verdict: 'skipped',
    reason: 'paused',
    version: 2,
  })
  expect(await t.explain(canceled.jobId, '2026-01-05T12:00:00Z')).toMatchObject({
    verdict: 'never',
    reason: 'canceled',
    by: { actor: 'bk_reader' },
  })
})

test('the past is judged by the definition of that time', async () => {
  const t = await setup()
  await t.kit.handle('mail', () => {})
  const { jobId } = await t.jobs.create(HOURLY)
  await t.kit.pass(2 * HOUR + MINUTE)
  await t.jobs.update(jobId, { cron: '30 * * * *' })
  await t.kit.pass(2 * HOUR)
  await t.jobs.update(jobId, { payload: 2 })
  expect(await t.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject({ verdict: 'ran', version: 1 })
  expect(await t.explain(jobId, '2026-01-05T09:30:00Z')).toMatchObject({
    verdict: 'never',
    reason: 'expression',
    version: 1,
    nearest: { before: new Date(START + HOUR), after: new Date(START + 2 * HOUR) },
  })
  expect(await t.explain(jobId, '2026-01-05T11:30:00Z')).toMatchObject({ verdict: 'ran', version: 2 })
  expect(await t.explain(jobId, '2026-01-05T11:00:00Z')).toMatchObject({
    verdict: 'never',
    reason: 'expression',
    version: 2,
  })
  expect(await t.explain(jobId, '2026-01-06T11:30:00Z')).toMatchObject({ verdict: 'will_run', version: 3 })
})

test('after an outage the catch-up policy is the reason of what was left out', async () => {
  const t = await setup()
  await t.kit.handle('mail', () => {})
  const { jobId } = await t.jobs.create(HOURLY)
  await t.kit.settle()
  t.outage(5 * HOUR + 30 * MINUTE)
  await t.kit.settle()
  expect(await t.explain(jobId, '2026-01-05T10:00:00Z')).toMatchObject({
    verdict: 'skipped',
    reason: 'catch_up_expired',
    skip: { from: new Date(START + HOUR), to: new Date(START + 5 * HOUR), count: 4 },
  })
  expect(await t.explain(jobId, '2026-01-05T13:00:00Z')).toMatchObject({
    verdict: 'ran',
    run: { cause: 'catch_up', latenessMs: 30 * MINUTE },
    sentence:
      'The run of 2026-01-05 13:00 UTC, which was caught up later, succeeded at its first attempt, begun 30 min after its time.',
  })
})

test('what is to come is due with its jitter; what is due is waiting until somebody decides it', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ ...HOURLY, cron: '0 9 * * *', jitter: '10m' })
  const found = await t.explain(jobId, '2026-01-05T09:00:00Z')
  expect(found).toMatchObject({ verdict: 'will_run', reason: null, nearest: null })
  const dueAt = found.dueAt?.getTime() ?? 0
  expect(dueAt).toBeGreaterThan(START + HOUR)
  expect(found.sentence).toMatch(
    /^It will run at 2026-01-05 09:00 UTC, due at 2026-01-05 09:0\d(:\d\d)? UTC by its jitter\.$/,
  )
  t.kit.clock.advance(HOUR + 1)
  expect(await t.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject({ verdict: 'waiting', reason: 'jitter' })
  t.kit.clock.advance(dueAt - t.kit.clock.now())
  expect(await t.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject({ verdict: 'waiting', reason: 'not_promoted' })
})

test('bounds, used up runs, and times before the job are the rules that they are', async () => {
  const t = await setup()
  await t.kit.handle('mail', () => {})
  const { jobId } = await t.jobs.create({
    ...HOURLY,
    startAt: '2026-01-05T10:00:00Z',
    endAt: '2026-01-05T20:00:00Z',
    maxRuns: 3,
  })
  const reasonAt = async (hour: string) => {
    const { verdict, reason } = await t.explain(jobId, `2026-01-05T${hour}:00:00Z`)
    return [verdict, reason]
  }
  expect(await reasonAt('07')).toEqual(['never', 'not_created'])
  expect(await reasonAt('12')).toEqual(['will_run', null])
  expect(await reasonAt('13')).toEqual(['never', 'max_runs'])
  await t.kit.pass(20 * HOUR)
  expect(await reasonAt('12')).toEqual(['ran', null])
  expect(await reasonAt('13')).toEqual(['never', 'max_runs'])
  expect((await t.explain(jobId, '2026-01-05T13:00:00Z')).sentence).toBe(
    'Nothing runs at 2026-01-05 13:00 UTC: the job has used up its maxRuns by then.',
  )
})

test('a one-off tells its one time to whoever asks about another', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ queue: 'mail', runAt: '2026-01-05T12:00:00Z', payload: 1 })
  expect(await t.explain(jobId, '2026-01-05T12:00:00Z')).toMatchObject({
    verdict: 'will_run',
    nominalAt: new Date(START + 4 * HOUR),
  })
  expect(await t.explain(jobId, '2026-01-05T11:00:00Z')).toMatchObject({
    verdict: 'never',
    reason: 'one_off',
    nearest: { before: null, after: new Date(START + 4 * HOUR) },
    sentence: 'Nothing runs at 2026-01-05 11:00 UTC: the job runs once; the first time after is 2026-01-05 12:00 UTC.',
  })
  await t.jobs.pause(jobId, { reason: 'not yet' })
  expect(await t.explain(jobId, '2026-01-05T12:00:00Z')).toMatchObject({ verdict: 'will_run', reason: 'job_paused' })
  t.kit.clock.advance(5 * HOUR)
  expect(await t.explain(jobId, '2026-01-05T12:00:00Z')).toMatchObject({ verdict: 'waiting', reason: 'job_paused' })
  await (await t.as('bk_stop')).jobs.cancel(jobId)
  expect(await t.explain(jobId, '2026-01-05T12:00:00Z')).toMatchObject({
    verdict: 'skipped',
    reason: 'canceled',
    by: { actor: 'bk_stop', action: 'cancel' },
    sentence: '2026-01-05 12:00 UTC was skipped: it was canceled by bk_stop before it started.',
  })
})

test('a run that was canceled alone, or with its queue, before it started names who did it', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create(HOURLY)
  await t.kit.settle()
  await (await t.as('bk_one')).runs.cancel(runIdOf(jobId, START))
  await t.kit.pass(HOUR)
  await (await t.as('bk_all')).queues.purge('mail')
  expect(await t.explain(jobId, '2026-01-05T08:00:00Z')).toMatchObject({
    verdict: 'skipped',
    reason: 'canceled',
    by: { actor: 'bk_one' },
  })
  expect(await t.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject({
    by: { actor: 'bk_all', action: 'purge' },
    sentence: '2026-01-05 09:00 UTC was skipped: its queue was emptied by bk_all before it started.',
  })
})

test('a run that could not start by its deadline was skipped', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ ...HOURLY, startDeadline: '10m', overlap: 'allow' })
  await t.kit.settle()
  t.kit.clock.advance(20 * MINUTE)
  await t.kit.handle('mail', () => {})
  await t.kit.settle()
  expect(await t.explain(jobId, '2026-01-05T08:00:00Z')).toMatchObject({ verdict: 'skipped', reason: 'start_deadline' })
})
