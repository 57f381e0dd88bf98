import { expect, test } from 'vitest'
import { setup as setupNodes } from './setup.ts'

const JOB = { tenant: 'acme', queue: 'work' }
const HOLD = 815

/** Two nodes that both know the tenant `acme`, which has nothing. */
async function setup() {
  const t = await setupNodes()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { tenants } = a.engine.admin
  const { id } = await tenants.create({ name: 'acme' }, 'root')
  for (const { jobs } of [a, b]) await jobs.cancel((await jobs.create(JOB)).jobId)
  const orphans = () =>
    t.query(
      `select job_id from (select tenant_id, job_id from runs union all select tenant_id, job_id from timers) live
       where tenant_id not in (select id from tenants)`,
    )
  const deletionBegun = async () => (await t.query('select from tenants where deletion is not null')).length === 1
  return { ...t, a, b, tenants, id, orphans, deletionBegun }
}

test('a create in a transaction that commits while its tenant is deleted keeps the tenant', async () => {
  const t = await setup()
  const client = await t.connect()
  await client.query('begin')
  const { jobId } = await t.b.jobs.create(JOB, { tx: client })
  const deleted = t.tenants.delete(t.id, 'root').then(
    () => 'deleted',
    (error) => error.code,
  )
  await expect.poll(t.deletionBegun).toBe(true)
  // Whoever asks now is refused, by every node and from SQL.
  await expect(t.a.jobs.create(JOB)).rejects.toMatchObject({ code: 'invalid_job' })
  await expect(t.b.jobs.create(JOB)).rejects.toMatchObject({ code: 'invalid_job' })
  await expect(t.query(`select create_job('{"tenant": "acme", "queue": "work"}')`)).rejects.toThrow(/no tenant acme/)
  await client.query('commit')
  expect(await deleted).toBe('not_empty')
  expect(await t.orphans()).toEqual([])
  // It is as before.
  await t.b.jobs.create(JOB)
  expect(await t.b.jobs.get(jobId)).toMatchObject({ jobId, status: 'active' })
})

test('a create that is in the middle of its statement when its tenant is deleted keeps the tenant', async () => {
  const t = await setup()
  const holder = await t.connect()
  await holder.query('select pg_advisory_lock($1)', [HOLD])
  await t.query(
    `create function hold_create() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(${HOLD}); return new; end $$`,
  )
  await t.query('create trigger hold_create before insert on runs for each row execute function hold_create()')
  const created = t.b.jobs.create(JOB)
  await t.untilBlocked()
  const deleted = t.tenants.delete(t.id, 'root').then(
    () => 'deleted',
    (error) => error.code,
  )
  await expect.poll(t.deletionBegun).toBe(true)
  await holder.query('select pg_advisory_unlock($1)', [HOLD])
  expect(await deleted).toBe('not_empty')
  expect(await t.b.jobs.get((await created).jobId)).toMatchObject({ status: 'active' })
  expect(await t.orphans()).toEqual([])
})

test('a node that still knows a tenant which another deleted creates nothing for it', async () => {
  const t = await setup()
  await t.tenants.delete(t.id, 'root')
  const known = () => t.query('select from specs')
  const before = (await known()).length
  const refused = { code: 'invalid_job', message: 'there is no tenant "acme"' }
  for (const job of [JOB, { ...JOB, delay: '1h' }, { ...JOB, cron: '* * * * *' }, { ...JOB, idempotencyKey: 'k' }]) {
    await expect(t.b.jobs.create(job), JSON.stringify(job)).rejects.toMatchObject(refused)
    await expect(t.b.jobs.createMany([{ queue: 'work' }, job])).rejects.toMatchObject({ code: 'invalid_job' })
  }
  const client = await t.connect()
  await client.query('begin')
  await expect(t.b.jobs.create(JOB, { tx: client })).rejects.toMatchObject(refused)
  await client.query('rollback')
  expect(await known()).toHaveLength(before)
  expect(await t.orphans()).toEqual([])
  expect(await t.query('select from keys')).toEqual([])
})

test('limits and batches of a deleted tenant go with it', async () => {
  const t = await setup()
  const limited = { ...JOB, payload: 1, concurrency: { key: 'k', limit: 1 } }
  const { jobId } = await t.a.jobs.create(limited)
  await t.a.jobs.cancel(jobId)
  await t.query('insert into batches (created_at, id, tenant_id, total, shard) values (now(), $1, $2, 1, 0)', [
    jobId,
    t.id,
  ])
  const left = () => t.query('select tenant_id from limits union all select tenant_id from batches')
  expect(await left()).toEqual([{ tenant_id: t.id }, { tenant_id: t.id }])
  await t.tenants.delete(t.id, 'root')
  expect(await left()).toEqual([])
})

test('creates of others that share a statement with one of a deleted tenant are done', async () => {
  const t = await setup()
  await t.tenants.delete(t.id, 'root')
  const answers = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) => t.b.jobs.create(i % 4 === 0 ? JOB : { queue: 'work' })),
  )
  expect(answers.map(({ status }) => status)).toEqual(
    Array.from({ length: 20 }, (_, i) => (i % 4 === 0 ? 'rejected' : 'fulfilled')),
  )
  expect(await t.query('select from runs')).toHaveLength(15)
  expect(await t.orphans()).toEqual([])
})

test('while creates come from everywhere, a tenant is deleted with nothing of it left, or not at all', async () => {
  const t = await setup()
  const creating = Array.from({ length: 40 }, async (_, i) => {
    const { jobs } = i % 2 === 0 ? t.a : t.b
    try {
      const { jobId } = await jobs.create(i % 3 === 0 ? { ...JOB, idempotencyKey: `k${i}` } : JOB)
      await jobs.cancel(jobId)
    } catch (error) {
      expect(error).toMatchObject({ code: 'invalid_job' })
    }
  })
  const deleted = await Promise.allSettled(Array.from({ length: 3 }, () => t.tenants.delete(t.id, 'root')))
  await Promise.all(creating)
  expect(await t.orphans()).toEqual([])
  expect(deleted.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(1)
  // Whatever came of it, nobody is left half deleted.
  expect(await t.query('select from tenants where deletion is not null')).toEqual([])
})

test('a deletion that was cut off in the middle can be done again', async () => {
  const t = await setup()
  await t.query('update tenants set deletion = gen_random_uuid() where id = $1', [t.id])
  await t.tenants.delete(t.id, 'root')
  expect(await t.query('select from tenants where id = $1', [t.id])).toEqual([])
})

test('a key that is rotated while its tenant is deleted waits for that, and is gone', async () => {
  const t = await setup()
  const { id } = await t.a.engine.admin.apiKeys.create({ tenantId: t.id, name: 'key', scopes: ['read'] }, 'root')
  const deleter = await t.connect()
  await deleter.query('begin')
  await deleter.query('select from tenants where id = $1 for update', [t.id])
  const rotated = expect(t.b.engine.admin.apiKeys.rotate(id, { overlapMs: 0 }, 'root')).rejects.toMatchObject({
    code: 'not_found',
  })
  await t.untilBlocked()
  await deleter.query('delete from api_keys where tenant_id = $1', [t.id])
  await deleter.query('commit')
  await rotated
})
