import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { BelfryError } from '../errors.ts'
import { Partitioner } from '../history/partitioner.ts'
import { newJobId } from '../job/ids.ts'
import { OUTCOME, RUN_STATE } from '../job/states.ts'
import { ManualClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { systemRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'
import type { Page } from '../store/page.ts'
import { listDeadLetters } from './list-dead-letters.sql.ts'
import { type ListJobs, listJobs } from './list-jobs.sql.ts'
import { type ListRuns, listRuns } from './list-runs.sql.ts'

const NOW = Date.UTC(2026, 10, 15, 13, 30)

async function setup({ shards = 8 }: { shards?: number } = {}) {
  const database = await createDatabase({ days: { around: NOW, ahead: 14 } })
  onTestFinished(() => database.drop())
  const db = new Database({
    connection: inject('postgres'),
    schema: database.schema,
    logger: silentLogger,
  })
  onTestFinished(() => db.close())
  await new Partitioner({ db, clock: new ManualClock(NOW), logger: silentLogger }).ensure()
  await database.query(`insert into meta (key, value) values ('shards', $1)`, [String(shards)])
  await database.query(`insert into tenants (id, name) values (2, 'other')`)
  await database.query('delete from queues')
  await database.query(
    `insert into queues (id, tenant_id, name) values (1, 1, 'emails'), (2, 1, 'calls'), (3, 2, 'emails')`,
  )
  let made = 0
  const nextId = () => newJobId(made % shards, NOW + made++ * 1_000, systemRandom)
  const shardOf = (jobId: string) => Number.parseInt(jobId.slice(15, 18), 16)
  const spec = async ({ tenant = 1, queue = 'emails', name = null as string | null } = {}) => {
    const jobId = nextId()
    await database.query(
      `insert into specs (updated_at, job_id, tenant_id, version, shard, name, definition) values (now(), $1, $2, 1, $3, $4, $5)`,
      [jobId, tenant, shardOf(jobId), name, JSON.stringify({ queue })],
    )
    return jobId
  }
  const recurring = async ({ tenant = 1, status = 0, queue = 'emails', name = null as string | null } = {}) => {
    const jobId = nextId()
    await database.query(
      `insert into jobs (updated_at, id, tenant_id, version, shard, status, name, definition) values (now(), $1, $2, 1, $3, $4, $5, $6)`,
      [jobId, tenant, shardOf(jobId), status, name, JSON.stringify({ queue })],
    )
    return jobId
  }
  const run = (jobId: string, { tenant = 1, queue = 1, at = NOW, state = RUN_STATE.ready as number } = {}) =>
    database.fabricate(
      `insert into runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause,
         delivery, one_off, cancel_requested, has_dependents)
       values (to_timestamp($1), to_timestamp($1), 0, $2, $3, $4, 1, 0, 0, 0, $5, $6, 5, 0, 0, false, false, false)`,
      [at / 1000, jobId, tenant, queue, shardOf(jobId), state],
    )
  const end = (
    jobId: string,
    {
      tenant = 1,
      queue = 1,
      at = NOW,
      ended = NOW,
      number = 1,
      outcome = OUTCOME.succeeded as number,
      final = true,
    } = {},
  ) =>
    database.query(
      `insert into attempts (nominal_at, due_at, leased_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
       values (to_timestamp($1), to_timestamp($1), to_timestamp($1), to_timestamp($2), $3, $4, $5, 1, $6, $7, $8, 0, true, $9)`,
      [at / 1000, ended / 1000, jobId, tenant, queue, number, shardOf(jobId), outcome, final],
    )
  const die = (jobId: string, { tenant = 1, queue = 1, died = NOW, failureClass = 1 } = {}) =>
    database.query(
      `insert into dead_letters (nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority, cause,
         delivery, failure_class, one_off, error)
       values (to_timestamp($1), to_timestamp($1), to_timestamp($2), $3, $4, $5, 1, 5, 4, 0, $6, 5, 1, 0, $7, true, 'x')`,
      [NOW / 1000, died / 1000, jobId, tenant, queue, shardOf(jobId), failureClass],
    )
  const jobs = (request: Omit<ListJobs, 'tenantId'>) =>
    pages(
      (page) => listJobs(db, { tenantId: 1, ...request, ...page }),
      ({ jobId }) => jobId,
    )
  const runs = (request: Omit<ListRuns, 'tenantId' | 'shards'>) =>
    pages(
      (page) => listRuns(db, { tenantId: 1, shards, ...request, ...page }),
      ({ jobId, status }) => `${jobId} ${status}`,
    )
  return { ...database, db, nextId, spec, recurring, run, end, die, jobs, runs }
}

/** Turns every page; each must get somewhere. */
async function pages<Item>(
  turn: (page: { cursor?: string }) => Promise<Page<Item>>,
  show: (item: Item) => string,
): Promise<string[]> {
  const all: string[] = []
  const cursors = new Set<string>()
  let page = await turn({})
  for (;;) {
    all.push(...page.items.map(show))
    if (page.nextCursor === null) return all
    expect(cursors).not.toContain(page.nextCursor)
    cursors.add(page.nextCursor)
    page = await turn({ cursor: page.nextCursor })
  }
}

test('jobs of both kinds come newest first, each once, whatever the size of a page', async () => {
  const t = await setup()
  const made: string[] = []
  for (let i = 0; i < 12; i++) made.push(i % 3 === 0 ? await t.recurring() : await t.spec())
  await t.spec({ tenant: 2 })
  await t.recurring({ tenant: 2 })
  for (const limit of [1, 5, 12, 13, 1_000]) expect(await t.jobs({ limit })).toEqual(made.toReversed())
  expect((await listJobs(t.db, { tenantId: 1, limit: 12 })).nextCursor).toBeNull()
})

test('jobs are filtered by status, queue and name', async () => {
  const t = await setup()
  const [active, paused, over] = [
    await t.recurring({ name: 'digest' }),
    await t.recurring({ status: 1 }),
    await t.recurring({ status: 3 }),
  ]
  const [live, done, failed, called] = [
    await t.spec({ name: 'digest' }),
    await t.spec(),
    await t.spec(),
    await t.spec({ queue: 'calls' }),
  ]
  await t.run(live)
  await t.end(done)
  await t.end(failed, { outcome: OUTCOME.failed })
  await t.end(called, { outcome: OUTCOME.canceled })
  expect(await t.jobs({ status: 'active', limit: 1 })).toEqual([live, active])
  expect(await t.jobs({ status: 'paused' })).toEqual([paused])
  expect(await t.jobs({ status: 'canceled' })).toEqual([called, over])
  expect(await t.jobs({ status: 'succeeded' })).toEqual([done])
  expect(await t.jobs({ status: 'failed' })).toEqual([failed])
  expect(await t.jobs({ status: 'completed' })).toEqual([])
  expect(await t.jobs({ queue: 'calls' })).toEqual([called])
  expect(await t.jobs({ name: 'digest', limit: 1 })).toEqual([live, active])
  expect(await t.jobs({ name: 'digest', queue: 'calls' })).toEqual([])
})

test('a filter that finds little looks at a bounded number of jobs per page, and the pages reach the end', async () => {
  const t = await setup()
  const oldest = await t.recurring({ status: 1 })
  await t.query(
    `insert into jobs (updated_at, id, tenant_id, version, shard, status, definition)
     select now(), ('02000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, 1, 0, 0, '{}' from generate_series(1, 4500) n`,
  )
  expect((await listJobs(t.db, { tenantId: 1, status: 'paused' })).items).toEqual([])
  expect(await t.jobs({ status: 'paused' })).toEqual([oldest])
})

test('live runs come first, then those that are over, the latest end first; each run once', async () => {
  const t = await setup()
  const [first, second, third, fourth] = [t.nextId(), t.nextId(), t.nextId(), t.nextId()]
  await t.run(first, { state: RUN_STATE.leased })
  await t.run(second, { state: RUN_STATE.waiting })
  await t.end(second, { outcome: OUTCOME.failed, final: false })
  await t.end(third, { ended: NOW + 1, outcome: OUTCOME.failed, final: false })
  await t.end(third, { ended: NOW + 2, number: 2 })
  await t.end(fourth, { ended: NOW + 3, outcome: OUTCOME.failed })
  await t.end(fourth, { ended: NOW + 4, number: 2, outcome: OUTCOME.lost })
  const reopened = t.nextId()
  await t.end(reopened, { ended: NOW + 9, outcome: OUTCOME.failed })
  await t.run(reopened)
  await t.run(t.nextId(), { tenant: 2, queue: 3 })
  await t.end(t.nextId(), { tenant: 2, queue: 3 })
  const all = [`${reopened} ready`, `${second} waiting`, `${first} running`, `${fourth} lost`, `${third} succeeded`]
  for (const limit of [1, 2, 3, 4, 5, 100]) expect(await t.runs({ limit })).toEqual(all)
  expect(await t.runs({ status: 'running' })).toEqual([`${first} running`])
  expect(await t.runs({ status: 'lost' })).toEqual([`${fourth} lost`])
  expect(await t.runs({ status: 'failed' })).toEqual([])
  expect(await t.runs({ queue: 'calls' })).toEqual([])
  expect(await t.runs({ queue: 'emails', limit: 2 })).toEqual(all)
  const { items } = await listRuns(t.db, { tenantId: 1, shards: 8 })
  expect(items.map(({ failures, attempt, queue, tenant }) => ({ failures, attempt, queue, tenant }))).toContainEqual({
    ...{ failures: 1, attempt: 2, queue: 'emails', tenant: 'default' },
  })
})

test('thousands of runs of everybody, many with the same instant, are listed each once', async () => {
  const t = await setup({ shards: 2 })
  await t.fabricate(
    `insert into runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause, delivery,
       one_off, cancel_requested, has_dependents)
     select '2026-11-15'::timestamptz + n % 2 * interval '1 ms', now(), 0, ('019b0000-0000-7000-8000-' || lpad(to_hex(n / 2), 12, '0'))::uuid, 1 + (n / 2) % 2, 1, 1, 0, 0, 0,
       (n / 2) % 3 / 2, 0, 5, 0, 0, false, false, false
     from generate_series(0, 2999) n`,
  )
  await t.query(
    `insert into attempts (nominal_at, due_at, leased_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
     select '2026-11-15', now(), '2026-11-15', '2026-11-15'::timestamptz + n / 700 * interval '1 hour', ('019b0000-0000-7000-8000-' || lpad(to_hex(9000 + n / 2), 12, '0'))::uuid, 1 + n / 2 % 2, 1, 1,
       1 + n % 2, 0, 2 - n % 2, 0, true, n % 2 = 1
     from generate_series(0, 2999) n`,
  )
  for (const limit of [97, 1_000]) {
    const found = await t.runs({ limit })
    expect(found).toHaveLength(1_500 + 750)
    expect(new Set(found.filter((run) => run.endsWith('ready'))).size).toBe(750)
    expect(new Set(found.filter((run) => run.endsWith('succeeded'))).size).toBe(750)
    expect(found.findIndex((run) => run.endsWith('succeeded'))).toBe(1_500)
  }
})

test('the runs of one job come by their nominal time, the latest first', async () => {
  const t = await setup()
  const jobId = await t.recurring()
  const at = (minute: number) => NOW + minute * 60_000
  await t.end(jobId, { at: at(1), ended: at(1) })
  await t.end(jobId, { at: at(2), ended: at(2), outcome: OUTCOME.failed, final: false })
  await t.end(jobId, { at: at(2), ended: at(9), number: 2, outcome: OUTCOME.canceled })
  await t.end(jobId, { at: at(3), ended: at(3), outcome: OUTCOME.failed })
  await t.run(jobId, { at: at(3) })
  await t.run(jobId, { at: at(4), state: RUN_STATE.blocked, queue: 2 })
  await t.end(t.nextId(), { at: at(5) })
  const show = async (request: Omit<ListRuns, 'tenantId' | 'jobId' | 'shards'>, tenantId = 1) =>
    pages(
      (page) => listRuns(t.db, { tenantId, shards: 8, jobId, ...request, ...page }),
      ({ nominalAt, status }) => `${(nominalAt.getTime() - NOW) / 60_000} ${status}`,
    )
  for (const limit of [1, 2, 3, 4, 100])
    expect(await show({ limit })).toEqual(['4 blocked', '3 ready', '2 canceled', '1 succeeded'])
  expect(await show({ status: 'succeeded' })).toEqual(['1 succeeded'])
  expect(await show({ status: 'ready' })).toEqual(['3 ready'])
  expect(await show({ queue: 'calls' })).toEqual(['4 blocked'])
  expect(await show({}, 2)).toEqual([])
  expect(await listRuns(t.db, { tenantId: 1, shards: 8, jobId: 'x' })).toEqual({ items: [], nextCursor: null })
})

test('dead letters come latest first, and are filtered by queue, failure class and job', async () => {
  const t = await setup()
  const [one, two, three] = [t.nextId(), t.nextId(), t.nextId()]
  await t.die(one)
  await t.die(two, { queue: 2, failureClass: 2 })
  await t.die(three, { died: NOW - 1 })
  await t.die(t.nextId(), { tenant: 2 })
  const show = (request: object) =>
    pages(
      (page) => listDeadLetters(t.db, { tenantId: 1, ...request, ...page }),
      ({ jobId }) => jobId,
    )
  for (const limit of [1, 2, 3, 100]) expect(await show({ limit })).toEqual([two, one, three])
  expect(await show({ queue: 'calls' })).toEqual([two])
  expect(await show({ failureClass: 'timeout', limit: 1 })).toEqual([one, three])
  expect(await show({ jobId: three })).toEqual([three])
  const { items } = await listDeadLetters(t.db, { tenantId: 1, limit: 1 })
  expect(items[0]).toMatchObject({
    queue: 'calls',
    tenant: 'default',
    failureClass: 'network',
    error: 'x',
    attempt: 5,
    failures: 4,
    cause: 'create',
  })
})

test('a cursor, limit or word that cannot be meant is refused', async () => {
  const t = await setup()
  const refused = async (list: Promise<unknown>) => {
    const error = await list.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(BelfryError)
    expect((error as BelfryError).code).toBe('invalid_argument')
  }
  const jobId = await t.spec()
  const foreign = Buffer.from(`${jobId}~1`).toString('base64url')
  for (const cursor of [
    '',
    'x',
    '%%%',
    foreign,
    `${Buffer.from(jobId).toString('base64url')}=`,
    Buffer.from("' or 1=1").toString('base64url'),
  ]) {
    await refused(listJobs(t.db, { tenantId: 1, cursor }))
    await refused(listRuns(t.db, { tenantId: 1, shards: 8, cursor }))
    await refused(listRuns(t.db, { tenantId: 1, shards: 8, jobId, cursor }))
    await refused(listDeadLetters(t.db, { tenantId: 1, cursor }))
  }
  for (const limit of [0, -1, 1_001, 1.5, Number.NaN]) await refused(listJobs(t.db, { tenantId: 1, limit }))
  await refused(listJobs(t.db, { tenantId: 1, status: 'actve' as never }))
  await refused(listRuns(t.db, { tenantId: 1, shards: 8, status: 'done' as never }))
  await refused(listDeadLetters(t.db, { tenantId: 1, failureClass: 'x' as never }))
})

test('live runs of any tenant come once and in order, however many pages and others there are', async () => {
  const t = await setup()
  const expected: Record<number, string[]> = { 1: [], 2: [] }
  for (let i = 0; i < 600; i++) {
    const tenant = i % 3 === 0 ? 2 : 1
    const jobId = t.nextId()
    await t.run(jobId, { tenant, queue: tenant === 1 ? 1 : 3 })
    expected[tenant]?.unshift(`${jobId} ready`)
  }
  for (const tenantId of [1, 2]) {
    const ended = await t.spec({ tenant: tenantId })
    await t.end(ended, { tenant: tenantId, queue: tenantId === 1 ? 1 : 3 })
    for (const limit of [7, 1_000]) {
      const listed = await pages(
        (page) => listRuns(t.db, { tenantId, shards: 8, limit, ...page }),
        ({ jobId, status }) => `${jobId} ${status}`,
      )
      expect(listed).toEqual([...(expected[tenantId] ?? []), `${ended} succeeded`])
    }
    const ofQueue = (queue: string) => listRuns(t.db, { tenantId, shards: 8, limit: 1_000, queue })
    expect((await ofQueue('emails')).items).toHaveLength((expected[tenantId]?.length ?? 0) + 1)
    expect((await ofQueue('calls')).items).toEqual([])
  }
})
