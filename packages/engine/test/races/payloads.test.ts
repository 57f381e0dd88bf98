import { expect, test } from 'vitest'
import { setup } from './setup.ts'

const DAY = 86_400_000

async function withPayload() {
  const t = await setup()
  const node = await t.startNode()
  const { payloads } = node.engine.http
  const { payloadRef } = await payloads.put(1, Buffer.from('hello'), 'text/plain')
  node.clock.advance(40 * DAY)
  await node.engine.partitioner.ensure()
  const isThere = async () => (await t.query('select from payloads')).length === 1
  return { ...t, node, payloads, payloadRef, isThere, job: { queue: 'reports', payloadRef, delay: '1h' } }
}

test('a purge that meets a create under way leaves its payload alone', async () => {
  const t = await withPayload()
  const client = await t.connect()
  await client.query('begin')
  await t.node.jobs.create(t.job, { tx: client })
  expect(await t.payloads.purge(t.node.clock.now())).toBe(0)
  await client.query('commit')
  expect(await t.payloads.purge(t.node.clock.now())).toBe(0)
  expect(await t.isThere()).toBe(true)
})

test('a create that commits after the purge looked at the uses, and before it has the payload, keeps it', async () => {
  const t = await withPayload()
  // The purge waits here: its statement has looked, and goes on when the create has committed.
  const holder = await t.connect()
  await holder.query('select pg_advisory_lock(815)')
  await t.query(`create function wait_here() returns boolean language plpgsql volatile as $$
    begin perform pg_advisory_xact_lock_shared(815); return true; end $$`)
  const looks = (async () => {
    const purge = await t.connect()
    await purge.query('set enable_seqscan = off')
    const { rowCount } = await purge.query(
      `with old as (
         select p.shard, p.id from payloads p
         where p.used_at < to_timestamp($1::float8 / 1000) and wait_here() and not exists (
           select from payload_uses e where e.shard = p.shard and e.payload_id = p.id)
         order by p.used_at limit 500 for update skip locked
       ) delete from payloads p using old o where p.shard = o.shard and p.id = o.id`,
      [t.node.clock.now() - 31 * DAY],
    )
    return rowCount
  })()
  await expect
    .poll(async () => (await t.query(`select from pg_locks where locktype = 'advisory' and not granted`)).length)
    .toBe(1)
  await t.node.jobs.create(t.job)
  await holder.query('select pg_advisory_unlock(815)')
  expect(await looks).toBe(0)
  expect(await t.isThere()).toBe(true)
})

test('a create that waits for a purge which takes its payload is refused, and stores nothing', async () => {
  const t = await withPayload()
  const purge = await t.connect()
  await purge.query('begin')
  await purge.query('delete from payloads')
  const refused = expect(t.node.jobs.create(t.job)).rejects.toMatchObject({
    code: 'invalid_job',
    complaints: [{ path: 'payloadRef' }],
  })
  await t.untilBlocked()
  await purge.query('commit')
  await refused
  expect(await t.query('select from specs')).toHaveLength(0)
  expect(await t.query('select from payload_uses')).toHaveLength(0)
})

test('creates that name the same payloads in opposite order do not wait for each other in a circle', async () => {
  const t = await withPayload()
  const refs = [t.payloadRef]
  for (let i = 0; i < 5; i++) refs.push((await t.payloads.put(1, Buffer.from([i]), 'text/plain')).payloadRef)
  const other = await t.startNode()
  for (let round = 1; round <= 5; round++) {
    const jobs = refs.map((payloadRef) => ({ queue: 'reports', payloadRef, delay: `${round * 100}d` }))
    await Promise.all([
      t.node.jobs.createMany(jobs),
      other.jobs.createMany([...jobs].reverse()),
      t.node.jobs.createMany(jobs),
    ])
  }
  expect(await t.query('select from payload_uses')).toHaveLength(5 * 3 * 6)
})

test('a redrive while the purge looks keeps the payload of the run', async () => {
  const t = await withPayload()
  const { payloadRef } = await t.payloads.put(1, Buffer.from('dead'), 'text/plain')
  await t.node.handle('broken', () => {
    throw new Error('no')
  })
  await t.node.jobs.create({ queue: 'broken', payloadRef, retry: { maxAttempts: 1 } })
  await t.node.claim('broken')
  await t.node.engine.handlers.settled()
  const [letter] = await t.query<{ job_id: string }>('select job_id from dead_letters')
  expect(letter).toBeDefined()
  t.node.clock.advance(40 * DAY)
  await t.node.engine.partitioner.ensure()
  const client = await t.connect()
  await client.query('begin')
  // As a redrive: from one table to the other in one transaction.
  await client.query('delete from dead_letters')
  await t.payloads.purge(t.node.clock.now())
  await client.query('rollback')
  expect(await t.query('select from payload_uses')).toHaveLength(1)
})
