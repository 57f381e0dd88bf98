import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, KIT_DAYS } from '../../test/database.ts'
import { mergeUpdate } from '../intake/merge-update.ts'
import { runIdOf } from '../job/ids.ts'
import { startTestNode } from '../testing/test-node.ts'
import { listChanges } from './list-changes.sql.ts'
import { recordChange, type Subject } from './record-change.sql.ts'

const SECOND = 1_000
const HOURLY = { queue: 'q', cron: '30 * * * *', payload: { n: 1 } }

async function setup() {
  const { schema, drop } = await createDatabase({ days: KIT_DAYS })
  onTestFinished(drop)
  const node = await startTestNode({
    database: inject('postgres'),
    schema,
    shards: 4,
    start: Date.UTC(2026, 0, 1),
    seed: 1,
    leaseMs: 30_000,
    cancelGraceMs: 10_000,
  })
  const { db, clock, engine } = node
  onTestFinished(() => db.close())
  const changes = async (subject: Subject, subjectId: string, tenantId = 1) =>
    (await listChanges(db, { tenantId, subject, subjectId })).items
  const update = (jobId: string, patch: object, by: string) =>
    engine.jobChanges.update(
      jobId,
      (json, nominalAt) => mergeUpdate(json, patch, { now: clock.now(), nominalAt }),
      (job, tenantId) => engine.registry.queueId(tenantId, job.queue),
      by,
    )
  const query = async (text: string) => {
    const client = await db.connect()
    return (await client.query(text.replaceAll('@', `"${schema}".`)).finally(() => client.end())).rows
  }
  return { db, clock, jobs: engine.jobChanges, runs: engine.runChanges, intake: engine.intake, changes, update, query }
}

test('every change of a job leaves its row: who, what, before, after, when; the first is its creation', async () => {
  const t = await setup()
  const created = t.clock.now()
  const { jobId } = await t.intake.create(HOURLY)
  t.clock.advance(SECOND)
  await t.jobs.pause(jobId, 'too loud', 'bk_pauser')
  await t.jobs.resume(jobId, 'bk_resumer')
  const { runId } = await t.jobs.trigger(jobId, 'bk_trigger')
  await t.update(jobId, { payload: { n: 2 } }, 'bk_editor')
  t.clock.advance(SECOND)
  await t.jobs.cancel(jobId, 'finish', 'bk_canceler')
  const changes = await t.changes('job', jobId)
  const definition = { queue: 'q', payload: { n: 1 }, schedule: { cron: '30 * * * *' } }
  expect(changes).toMatchObject([
    { action: 'create', before: null, after: definition, changedAt: new Date(created) },
    {
      action: 'pause',
      actor: 'bk_pauser',
      before: { status: 'active', reason: null },
      after: { status: 'paused', reason: 'too loud' },
    },
    {
      action: 'resume',
      actor: 'bk_resumer',
      before: { status: 'paused', reason: 'too loud' },
      after: { status: 'active', reason: null },
    },
    { action: 'trigger', actor: 'bk_trigger', before: null, after: { runId } },
    { action: 'update', actor: 'bk_editor', before: definition, after: { ...definition, payload: { n: 2 } } },
    {
      action: 'cancel',
      actor: 'bk_canceler',
      before: { status: 'active' },
      after: { status: 'canceled', running: 'finish' },
    },
  ])
  expect(changes.map(({ changedAt }) => changedAt.getTime() - created)).toEqual([
    0,
    SECOND,
    SECOND,
    SECOND,
    SECOND,
    2 * SECOND,
  ])
  for (const change of changes) expect(change).toMatchObject({ subject: 'job', subjectId: jobId })
})

test('what changes nothing leaves no row, and neither does what is refused', async () => {
  const t = await setup()
  const { jobId } = await t.intake.create(HOURLY)
  await t.jobs.resume(jobId, 'me')
  await t.jobs.pause(jobId, null, 'me')
  await t.jobs.pause(jobId, 'again', 'me')
  await expect(t.update(jobId, { cron: 'nonsense' }, 'me')).rejects.toThrow()
  await t.jobs.cancel(jobId, 'cancel', 'me')
  await t.jobs.cancel(jobId, 'cancel', 'me')
  await expect(t.jobs.trigger(jobId, 'me')).rejects.toMatchObject({ code: 'already_finished' })
  expect((await t.changes('job', jobId)).map(({ action }) => action)).toEqual(['create', 'pause', 'cancel'])
})

test('a change and its row are one: when the row cannot be written, nothing has changed', async () => {
  const t = await setup()
  const { jobId } = await t.intake.create(HOURLY)
  await t.query('alter table @job_changes add constraint nobody check (actor <> $$nobody$$)')
  await expect(t.jobs.pause(jobId, null, 'nobody')).rejects.toThrow()
  expect(await t.query('select status from @jobs')).toEqual([{ status: 0 }])
  await t.jobs.pause(jobId, null, 'somebody')
  expect(await t.query('select status from @jobs')).toEqual([{ status: 1 }])
})

test('a change finds the day to write to even after weeks in which nobody made one', async () => {
  const t = await setup()
  const { jobId } = await t.intake.create({ queue: 'q', runAt: new Date(t.clock.now() + 100 * 86_400_000) })
  t.clock.advance(60 * 86_400_000)
  await t.jobs.pause(jobId, null, 'me')
  expect((await t.changes('job', jobId)).map(({ action }) => action)).toEqual(['create', 'pause'])
})

test('a one-off is created by whom its definition names, and changes like any other', async () => {
  const t = await setup()
  const { jobId } = await t.intake.create({ queue: 'q', delay: '1h', payload: 1 }, { createdBy: 'bk_creator' })
  await t.update(jobId, { payload: 2 }, 'bk_editor')
  await t.update(jobId, { payload: 3 }, 'bk_editor')
  await t.jobs.cancel(jobId, 'cancel', 'bk_canceler')
  const changes = await t.changes('job', jobId)
  expect(changes.map(({ action }) => action)).toEqual(['create', 'update', 'update', 'cancel'])
  expect(changes[0]).toMatchObject({ actor: 'bk_creator', after: { payload: 1 } })
})

test('canceling and retrying a run leave rows of the run', async () => {
  const t = await setup()
  const { jobId } = await t.intake.create({ queue: 'q' })
  const runId = runIdOf(jobId, t.clock.now())
  await t.runs.cancel(runId, 'bk_canceler')
  await expect(t.runs.cancel(runId, 'bk_canceler')).rejects.toMatchObject({ code: 'already_finished' })
  expect(await t.changes('run', runId)).toMatchObject([
    {
      subject: 'run',
      subjectId: runId,
      action: 'cancel',
      actor: 'bk_canceler',
      before: null,
      after: { status: 'canceled' },
    },
  ])
  const dead = await t.intake.create({ queue: 'q' })
  const deadId = runIdOf(dead.jobId, t.clock.now())
  await t.query(`with gone as (delete from @runs returning *)
    insert into @dead_letters (nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority, cause, delivery, one_off)
    select nominal_at, due_at, due_at, job_id, tenant_id, queue_id, job_version, 1, 1, timeout_ms, shard, priority, cause, delivery, one_off from gone`)
  await t.runs.retry(deadId, 'bk_retrier')
  await expect(t.runs.retry(deadId, 'bk_retrier')).rejects.toMatchObject({ code: 'not_retryable' })
  expect((await t.changes('run', deadId)).map(({ action, actor }) => [action, actor])).toEqual([
    ['retry', 'bk_retrier'],
  ])
})

test("changes are listed in order, page by page, and never another tenant's", async () => {
  const t = await setup()
  const { jobId } = await t.intake.create(HOURLY)
  // All in one millisecond: the order is that of the changes.
  for (let i = 0; i < 5; i++) {
    await t.jobs.pause(jobId, `${i}`, 'me')
    await t.jobs.resume(jobId, 'me')
  }
  const seen: string[] = []
  let cursor: string | null | undefined
  for (let pages = 0; cursor !== null && pages < 20; pages++) {
    const page = await listChanges(t.db, {
      tenantId: 1,
      subject: 'job',
      subjectId: jobId,
      limit: 1,
      ...(cursor ? { cursor } : {}),
    })
    expect(page.items.length).toBeLessThanOrEqual(1)
    seen.push(
      ...page.items.map(({ action, after }) => (action === 'pause' ? (after as { reason: string }).reason : action)),
    )
    cursor = page.nextCursor
  }
  expect(seen).toEqual(['create', '0', 'resume', '1', 'resume', '2', 'resume', '3', 'resume', '4', 'resume'])
  expect(await t.changes('job', jobId, 2)).toEqual([])
  await expect(
    listChanges(t.db, { tenantId: 1, subject: 'job', subjectId: jobId, cursor: 'bm9uc2Vuc2U' }),
  ).rejects.toMatchObject({ code: 'invalid_argument' })
})

test('ids and names that are none have no changes, and an actor may be any text', async () => {
  const t = await setup()
  for (const id of ['', 'x', "' or 1=1", '019a8d3e-1f2a-7007-8abc-0123456789ab']) {
    expect(await t.changes('job', id)).toEqual([])
    expect(await t.changes('queue', id)).toEqual([])
  }
  const actor = "o'brien \0 \u{1F514}"
  await recordChange(t.db, { tenantId: 1, subject: 'queue', subjectId: 'q', action: 'pause', actor, at: t.clock.now() })
  expect((await t.changes('queue', 'q'))[0]?.actor).toBe(actor.replace('\0', '\u{FFFD}'))
})
