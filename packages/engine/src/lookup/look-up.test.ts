import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { recordCanceledOneOff } from '../attempts/cancel-runs.sql.ts'
import { finishEnded, finishGoesOn, finishSucceeded } from '../attempts/finish.sql.ts'
import { Partitioner } from '../history/partitioner.ts'
import { putDelayed, putImmediate, putRecurring } from '../intake/put-jobs.sql.ts'
import { newJobId, runIdOf } from '../job/ids.ts'
import { OUTCOME, RUN_STATE } from '../job/states.ts'
import { appendLogs } from '../leases/attempt-logs.sql.ts'
import { stopLive } from '../promotion/stop-live.ts'
import { ManualClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { systemRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'
import { getJob } from './get-job.sql.ts'
import { getLogs } from './get-logs.sql.ts'
import { getRun } from './get-run.sql.ts'

const NOW = Date.UTC(2026, 10, 15, 13, 30)
const LATER = NOW + 600_000
const DAY = 86_400_000
const SHARD = 7

async function setup() {
  const database = await createDatabase({ days: { around: NOW, ahead: 14 } })
  onTestFinished(() => database.drop())
  const db = new Database({
    connection: inject('postgres'),
    schema: database.schema,
    logger: silentLogger,
  })
  onTestFinished(() => db.close())
  await new Partitioner({ db, clock: new ManualClock(NOW), logger: silentLogger }).ensure()
  await database.query('delete from queues')
  await database.query(`insert into queues (id, tenant_id, name) values (1, 1, 'emails')`)
  await database.query(`insert into tenants (id, name) values (2, 'other')`)
  const definition = { queue: 'emails', payload: { to: 'a' }, labels: { team: 'x' }, priority: 7 }
  const job = (jobId: string) => ({
    ...{ shard: SHARD, jobId, tenantId: 1, queueId: 1, timeoutMs: 60_000, priority: 7, delivery: 0, name: null },
    ...{ limitKey: null, fairnessKey: null, hasDependents: false, state: RUN_STATE.ready },
    definitionJson: JSON.stringify(definition),
  })
  const delayed = async (at = LATER) => {
    const jobId = newJobId(SHARD, NOW, systemRandom)
    await putDelayed([{ ...job(jobId), kind: 'delayed', dueAt: at, turn: null }], NOW)(db)
    return jobId
  }
  const immediate = async () => {
    const jobId = newJobId(SHARD, NOW, systemRandom)
    await putImmediate([{ ...job(jobId), kind: 'immediate', dueAt: NOW, turn: 1 }], NOW)(db)
    return jobId
  }
  const recurring = async () => {
    const jobId = newJobId(SHARD, NOW, systemRandom)
    const schedule = { cron: '0 9 * * *', timezone: 'UTC' }
    const cron = {
      kind: 'recurring' as const,
      dueAt: LATER + 5,
      nominalAt: LATER,
      scheduleId: '1',
      overlap: 1,
      jitterMs: 5,
      maxRuns: null,
    }
    const definitionJson = JSON.stringify({ queue: 'emails', schedule })
    await putRecurring([{ ...job(jobId), name: 'digest', definitionJson, ...cron }], NOW)(db)
    return { jobId, schedule }
  }
  const lease = (jobId: string, attempt: number) =>
    database.fabricate(
      `update runs set state = 1, attempt = $2, holder = 9, leased_at = to_timestamp($3), lease_until = to_timestamp($3 + 30) where job_id = $1`,
      [jobId, attempt, NOW / 1000],
    )
  const fence = (jobId: string, nominalAt: number, attempt = 1) => ({
    shard: SHARD,
    jobId,
    nominalAt,
    attempt,
    holder: '9',
  })
  const ending = (jobId: string, nominalAt: number, attempt = 1, finishedAt = nominalAt + 250) => ({
    fence: fence(jobId, nominalAt, attempt),
    startedAt: finishedAt - 200,
    finishedAt,
  })
  const failing = { outcome: OUTCOME.failed, failureClass: 'http_5xx' as const, statusCode: 503, error: 'bad gateway' }
  return { ...database, db, delayed, immediate, recurring, lease, ending, failing }
}

test('a delayed job is active with its time, and its run waits', async () => {
  const t = await setup()
  const jobId = await t.delayed()
  expect(await getJob(t.db, 1, jobId)).toEqual({
    jobId,
    tenant: 'default',
    name: null,
    status: 'active',
    schedule: { runAt: new Date(LATER) },
    after: null,
    batchId: null,
    http: null,
    queue: 'emails',
    priority: 7,
    payload: { to: 'a' },
    payloadRef: null,
    labels: { team: 'x' },
    retry: null,
    timeoutMs: 300_000,
    nextRunAt: new Date(LATER),
    lastRun: null,
    version: 1,
    createdAt: new Date(NOW),
    createdBy: null,
    updatedAt: new Date(NOW),
    pausedAt: null,
    pausedReason: null,
    pausedBy: null,
    unique: null,
    concurrency: null,
    rateLimit: null,
  })
  expect(await getRun(t.db, 1, runIdOf(jobId, LATER))).toMatchObject({
    ...{ status: 'waiting', attempt: 0, failures: 0, cause: 'create', queue: 'emails', tenant: 'default' },
    ...{ nominalAt: new Date(LATER), dueAt: new Date(LATER), attempts: [], result: null, error: null },
  })
})

test('a paused one-off is paused until its timer is gone', async () => {
  const t = await setup()
  const jobId = await t.delayed()
  await t.query(`update timers set due_at = 'infinity'`)
  await t.query(`update specs set paused_at = to_timestamp($1), pause_reason = 'asked'`, [NOW / 1000])
  expect(await getJob(t.db, 1, jobId)).toMatchObject({
    status: 'paused',
    nextRunAt: null,
    pausedReason: 'asked',
    pausedAt: new Date(NOW),
  })
  expect(await getRun(t.db, 1, runIdOf(jobId, LATER))).toMatchObject({ status: 'waiting', dueAt: new Date(LATER) })
})

test('an immediate job has no schedule, and is active while its run is ready, leased, waiting or blocked', async () => {
  const t = await setup()
  const jobId = await t.immediate()
  const runId = runIdOf(jobId, NOW)
  expect(await getJob(t.db, 1, jobId)).toMatchObject({ status: 'active', schedule: null, nextRunAt: new Date(NOW) })
  expect(await getRun(t.db, 1, runId)).toMatchObject({ status: 'ready', attempt: 0, cause: 'create', finishedAt: null })

  await t.lease(jobId, 1)
  expect(await getJob(t.db, 1, jobId)).toMatchObject({ status: 'active', nextRunAt: null })
  expect(await getRun(t.db, 1, runId)).toMatchObject({
    status: 'running',
    attempt: 1,
    leaseUntil: new Date(NOW + 30_000),
  })

  await finishGoesOn(t.db, [
    { kind: 'goes_on', ...t.ending(jobId, NOW), ...t.failing, counted: true, nextDueAt: LATER, turn: null },
  ])
  expect(await getJob(t.db, 1, jobId)).toMatchObject({ status: 'active', nextRunAt: new Date(LATER), lastRun: null })
  expect(await getRun(t.db, 1, runId)).toMatchObject({
    ...{
      status: 'waiting',
      attempt: 1,
      failures: 1,
      failureClass: 'http_5xx',
      error: 'bad gateway',
      dueAt: new Date(LATER),
    },
    attempts: [
      {
        number: 1,
        counted: true,
        status: 'failed',
        failureClass: 'http_5xx',
        statusCode: 503,
        holder: '9',
        durationMs: 200,
      },
    ],
  })

  await t.fabricate('update runs set state = 3')
  expect(await getRun(t.db, 1, runId)).toMatchObject({ status: 'blocked' })
})

test('a run that succeeded after a failure shows both attempts, its result and no error', async () => {
  const t = await setup()
  const jobId = await t.immediate()
  await t.lease(jobId, 1)
  await finishGoesOn(t.db, [
    { kind: 'goes_on', ...t.ending(jobId, NOW), ...t.failing, counted: true, nextDueAt: LATER, turn: null },
  ])
  await t.lease(jobId, 2)
  const done = {
    ...t.ending(jobId, NOW, 2, LATER),
    outcome: OUTCOME.succeeded,
    failureClass: null,
    statusCode: 200,
    error: null,
  }
  await finishEnded(t.db, [{ kind: 'ended', ...done, result: '{"sent":3}' }])
  expect(await getRun(t.db, 1, runIdOf(jobId, NOW))).toMatchObject({
    ...{
      status: 'succeeded',
      attempt: 2,
      failures: 1,
      result: { sent: 3 },
      failureClass: null,
      error: null,
      finishedAt: new Date(LATER),
    },
    attempts: [
      { number: 1, status: 'failed' },
      { number: 2, status: 'succeeded', statusCode: 200, leasedAt: new Date(NOW) },
    ],
  })
  expect(await getJob(t.db, 1, jobId)).toMatchObject({
    ...{ status: 'succeeded', nextRunAt: null },
    lastRun: {
      id: runIdOf(jobId, NOW),
      status: 'succeeded',
      finishedAt: new Date(LATER),
      failureClass: null,
      error: null,
    },
  })
})

test.for(['failed', 'lost'] as const)(
  'a run that ended %s is a dead letter, and its job failed, also when history has expired',
  async (outcome) => {
    const t = await setup()
    const jobId = await t.immediate()
    await t.lease(jobId, 5)
    await finishEnded(t.db, [
      { kind: 'ended', ...t.ending(jobId, NOW, 5), ...t.failing, outcome: OUTCOME[outcome], result: null },
    ])
    const failed = { failureClass: 'http_5xx', error: 'bad gateway' }
    expect(await getRun(t.db, 1, runIdOf(jobId, NOW))).toMatchObject({
      status: outcome,
      attempt: 5,
      failures: 1,
      ...failed,
    })
    expect(await getJob(t.db, 1, jobId)).toMatchObject({ status: 'failed', lastRun: { status: outcome, ...failed } })

    await t.query('delete from attempts')
    expect(await getRun(t.db, 1, runIdOf(jobId, NOW))).toMatchObject({
      status: 'failed',
      attempt: 5,
      failures: 1,
      attempts: [],
      ...failed,
    })
    expect(await getJob(t.db, 1, jobId)).toMatchObject({
      status: 'failed',
      lastRun: { id: runIdOf(jobId, NOW), status: 'failed', ...failed },
    })
  },
)

test('a run that was opened again is live, whatever its history says', async () => {
  const t = await setup()
  const jobId = await t.immediate()
  await t.lease(jobId, 1)
  const [run] = await t.query<Record<string, unknown>>('select * from runs')
  await finishEnded(t.db, [{ kind: 'ended', ...t.ending(jobId, NOW), ...t.failing, result: null }])
  await t.query('delete from dead_letters')
  await t.fabricate(`insert into runs select (json_populate_record(null::runs, $1)).*`, [
    JSON.stringify({ ...run, state: 0 }),
  ])
  expect(await getJob(t.db, 1, jobId)).toMatchObject({ status: 'active', lastRun: { status: 'failed' } })
  expect(await getRun(t.db, 1, runIdOf(jobId, NOW))).toMatchObject({
    status: 'ready',
    finishedAt: null,
    attempts: [{ number: 1 }],
  })
})

test('a one-off that was canceled long before its time is found as canceled', async () => {
  const t = await setup()
  const far = NOW + 300 * DAY
  const jobId = await t.delayed(far)
  await t.query('delete from timers')
  await recordCanceledOneOff(t.db, { shard: SHARD, jobId, nominalAt: far, tenantId: 1, queueId: 1, jobVersion: 1 }, NOW)
  expect(await getJob(t.db, 1, jobId)).toMatchObject({ status: 'canceled', schedule: { runAt: new Date(far) } })
  expect(await getRun(t.db, 1, runIdOf(jobId, far))).toMatchObject({
    status: 'canceled',
    attempt: 0,
    attempts: [{ number: 0, counted: false, status: 'canceled' }],
  })
})

test('a run that is canceled between two attempts is canceled, and had as many attempts as it was leased', async () => {
  const t = await setup()
  const jobId = await t.immediate()
  await t.lease(jobId, 1)
  await finishGoesOn(t.db, [
    { kind: 'goes_on', ...t.ending(jobId, NOW), ...t.failing, counted: true, nextDueAt: LATER, turn: null },
  ])
  await stopLive(t.db.bulk, { shard: SHARD, jobId, nominalAt: null }, { now: NOW + 1_000, graceMs: 0, leased: 'ask' })
  expect(await getJob(t.db, 1, jobId)).toMatchObject({
    status: 'canceled',
    lastRun: { status: 'canceled', attempt: 1 },
  })
  expect(await getRun(t.db, 1, runIdOf(jobId, NOW))).toMatchObject({ status: 'canceled', attempt: 1, failures: 1 })
})

test('a recurring job has its schedule, its next nominal time and its last run, whatever its status', async () => {
  const t = await setup()
  const { jobId, schedule } = await t.recurring()
  expect(await getJob(t.db, null, jobId)).toMatchObject({
    name: 'digest',
    status: 'active',
    schedule,
    nextRunAt: new Date(LATER),
    lastRun: null,
  })
  expect(await getRun(t.db, 1, runIdOf(jobId, LATER))).toMatchObject({
    status: 'waiting',
    cause: 'schedule',
    dueAt: new Date(LATER + 5),
  })

  const ends = `insert into attempts (nominal_at, due_at, leased_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, failure_class, cause, counted, final, error)
    values (to_timestamp($2), to_timestamp($2), to_timestamp($2), to_timestamp($2), $1, 1, 1, 1, $3, ${SHARD}, $4, $5, 0, true, $6, $7)`
  await t.query(ends, [jobId, NOW / 1000 - 60, 1, OUTCOME.succeeded, null, true, null])
  await t.query(ends, [jobId, NOW / 1000, 1, OUTCOME.failed, 1, false, 'first'])
  await t.query(ends, [jobId, NOW / 1000, 2, OUTCOME.failed, 2, true, 'second'])
  const lastRun = { id: runIdOf(jobId, NOW), status: 'failed', failureClass: 'network', error: 'second' }
  expect(await getJob(t.db, 1, jobId)).toMatchObject({ status: 'active', lastRun })

  for (const [number, status] of [
    [1, 'paused'],
    [2, 'completed'],
    [3, 'canceled'],
  ] as const) {
    await t.query('update jobs set status = $1', [number])
    expect(await getJob(t.db, 1, jobId)).toMatchObject({ status, lastRun })
  }
})

test('a job that SQL created and nobody has understood yet can be seen', async () => {
  const t = await setup()
  const jobId = newJobId(SHARD, NOW, systemRandom)
  await t.query(
    `insert into jobs (updated_at, id, tenant_id, version, shard, status, definition) values (now(), $1, 1, 1, ${SHARD}, 0, '{"cron": "* * * * *", "payload": 1}')`,
    [jobId],
  )
  await t.query(
    `insert into timers (due_at, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, shard, priority, overlap, delivery)
     values (now(), $1, 1, 1, 1, 0, 0, 0, ${SHARD}, 5, 0, 0)`,
    [jobId],
  )
  const expected = { status: 'active', nextRunAt: null, schedule: null, queue: 'default', payload: 1 }
  expect(await getJob(t.db, 1, jobId)).toMatchObject(expected)
})

test('what is not there, is not an id or belongs to somebody else is null', async () => {
  const t = await setup()
  const jobId = await t.delayed()
  const finished = await t.immediate()
  await t.lease(finished, 1)
  await finishSucceeded(t.db, [{ kind: 'succeeded', ...t.ending(finished, NOW) }])
  for (const id of [newJobId(SHARD, NOW, systemRandom), 'x', '', `${jobId}0`, jobId.toUpperCase()])
    expect(await getJob(t.db, 1, id)).toBeNull()
  for (const id of [runIdOf(jobId, LATER + 1), jobId, 'x', `${jobId}.`, `${jobId}.-`])
    expect(await getRun(t.db, 1, id)).toBeNull()
  expect(await getJob(t.db, 2, jobId)).toBeNull()
  expect(await getJob(t.db, 2, finished)).toBeNull()
  expect(await getRun(t.db, 2, runIdOf(jobId, LATER))).toBeNull()
  expect(await getRun(t.db, 2, runIdOf(finished, NOW))).toBeNull()
  expect(await getRun(t.db, null, runIdOf(finished, NOW))).toMatchObject({ status: 'succeeded' })
})

test('the logs of a run come attempt by attempt, line by line', async () => {
  const t = await setup()
  const jobId = await t.immediate()
  const line = (attempt: number, number: number, message: string, nominalAt = NOW) => ({
    ...{
      shard: SHARD,
      jobId,
      nominalAt,
      attempt,
      tenantId: 1,
      line: number,
      loggedAt: NOW + number,
      level: 'warn' as const,
      message,
    },
  })
  await appendLogs(t.db, [line(2, 1, 'c'), line(1, 2, 'b'), line(1, 1, 'a'), line(1, 1, 'of another run', NOW + 1)])
  const logs = await getLogs(t.db, null, runIdOf(jobId, NOW))
  expect(logs.map(({ message }) => message)).toEqual(['a', 'b', 'c'])
  expect(logs[0]).toEqual({ attempt: 1, line: 1, level: 'warn', loggedAt: new Date(NOW + 1), message: 'a' })
  expect(await getLogs(t.db, null, 'x')).toEqual([])
})
