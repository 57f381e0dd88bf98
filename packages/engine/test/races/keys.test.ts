import { expect, test } from 'vitest'
import { setup } from './setup.ts'

const DAY = 86_400_000
const keyed = (idempotencyKey: string) => ({ queue: 'work', payload: 1, idempotencyKey })

test('two equal keys in one batch are one job', async () => {
  const t = await setup()
  const node = await t.startNode()
  const made = await node.jobs.createMany([keyed('a'), keyed('b'), keyed('a')])
  expect(made.map(({ deduplicated }) => deduplicated)).toEqual([false, false, true])
  expect(made[2]?.jobId).toBe(made[0]?.jobId)
  expect(await t.query('select from runs')).toHaveLength(2)
  const again = await node.jobs.createMany([keyed('b'), keyed('a'), keyed('a')])
  expect(again.map(({ jobId }) => jobId)).toEqual([made[1]?.jobId, made[0]?.jobId, made[0]?.jobId])
  expect(await t.query('select from runs')).toHaveLength(2)
})

test('keyed batches in opposite order do not deadlock, and both are told the same jobs', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const keys = Array.from({ length: 50 }, (_, i) => `key-${i}`)
  const blocker = await t.connect()
  // Both batches begin while a third party holds a key in the middle of their order, so that they meet there.
  await blocker.query('begin')
  await blocker.query(
    `insert into keys (expires_at, job_id, tenant_id, shard, kind, key)
     select 'infinity', gen_random_uuid(), 1, s, 0, 'key-25' from generate_series(0, 1) s`,
  )
  const one = a.jobs.createMany(keys.map(keyed))
  const other = b.jobs.createMany([...keys].reverse().map(keyed))
  await t.untilBlocked(2)
  await blocker.query('rollback')
  const [first, second] = await Promise.all([one, other])
  expect([...second].reverse().map(({ jobId }) => jobId)).toEqual(first.map(({ jobId }) => jobId))
  const fresh = [first, second].map((made) => made.filter(({ deduplicated }) => !deduplicated).length)
  expect(fresh.sort((x, y) => x - y)).toEqual([0, 50])
  expect(await t.query('select from runs')).toHaveLength(50)
})

test('a create that meets the same key under way for too long is told so, and stores nothing', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const client = await t.connect()
  await client.query('begin')
  const { jobId } = (await a.jobs.create(keyed('k'), { tx: client })) as { jobId: string }
  await expect(b.jobs.create(keyed('k'))).rejects.toMatchObject({ code: 'in_progress', status: 409 })
  expect(await t.query('select from runs')).toEqual([])
  await client.query('commit')
  expect(await b.jobs.create(keyed('k'))).toMatchObject({ jobId, deduplicated: true })
})

test('of two creates that meet the key of a forgotten job at once one takes it, and the other is answered with its job', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const gone = await a.jobs.create({ ...keyed('k'), delay: '1h' })
  await t.query('delete from timers')
  await t.query('delete from specs')
  await t.query(`update keys set expires_at = 'infinity'`)
  for (const { clock } of [a, b]) clock.advance(401 * DAY)
  const blocker = await t.connect()
  await blocker.query('begin')
  await blocker.query('select from keys for update')
  const both = [a.jobs.create(keyed('k')), b.jobs.create(keyed('k'))]
  await t.untilBlocked(2)
  await blocker.query('rollback')
  const [first, second] = await Promise.all(both)
  expect(first?.jobId).toBe(second?.jobId)
  expect(first?.jobId).not.toBe(gone.jobId)
  expect([first?.deduplicated, second?.deduplicated].sort()).toEqual([false, true])
  expect(await t.query('select from runs')).toHaveLength(1)
})

test('of two who create a job of the same name at once one is told that it is taken', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const job = { name: 'digest', queue: 'work', every: 'PT1H', payload: 1 }
  const both = await Promise.allSettled([a.jobs.create(job), b.jobs.create(job)])
  const refused = both.filter(({ status }) => status === 'rejected')
  expect(refused).toMatchObject([{ reason: { code: 'name_taken' } }])
  expect(await t.query('select from jobs')).toHaveLength(1)
  expect(await t.query('select from timers')).toHaveLength(1)
})
