import { expect, test } from 'vitest'
import { payloads, START, setup } from '../concurrency-kit.ts'

test('two nodes never lease more of a queue than its limit, and what ends on one is taken by the other', async () => {
  const t = await setup()
  const [one, other] = [await t.startNode(), await t.startNode()]
  for (const node of [one, other]) await node.handle('work')
  await one.limit('work', { maxRunning: 5 })
  await one.jobs.createMany(payloads('work', 30))
  for (const node of [one, other]) await node.pulse()
  await Promise.all([one.claim('work'), other.claim('work')])
  for (let i = 0; i < 20; i++) {
    expect(await t.leased()).toBeLessThanOrEqual(5)
    for (const node of [one, other]) {
      node.clock.advance(20)
      await node.end(1)
    }
    for (const node of [one, other]) await node.pulse()
    await Promise.all([one.claim('work'), other.claim('work')])
  }
  const started = await t.query<{ n: number }>('select count(*)::int as n from attempts')
  expect(started[0]?.n).toBeGreaterThan(15)
})

test('a node that has not heard of a limit leases nothing of the queue, neither by a claim nor directly', async () => {
  const t = await setup()
  const [unaware, other] = [await t.startNode(), await t.startNode()]
  await unaware.handle('work')
  await unaware.jobs.createMany(payloads('work', 3))
  await unaware.jobs.createMany([
    { queue: 'work', every: 'PT1M', startAt: new Date(START + 1_000) },
    { queue: 'work', runAt: new Date(START + 1_000), payload: 1 },
  ])
  await other.limit('work', { maxRunning: 2 })
  await unaware.claim('work')
  expect(await t.leased()).toBe(0)
  unaware.clock.advance(2_000)
  await unaware.readTimers()
  await unaware.engine.promoter.runOnce()
  expect(await t.leased()).toBe(0)
  expect(await t.query('select state from runs')).toEqual(Array(5).fill({ state: 0 }))
  // The pulse tells it, and it goes on.
  await unaware.pulse()
  await unaware.claim('work')
  expect([await t.leased(), unaware.held.length]).toEqual([2, 2])
})

test('what was leased before there was a limit counts', async () => {
  const t = await setup()
  const node = await t.startNode()
  await node.handle('work', 120)
  await node.jobs.createMany(payloads('work', 120))
  await node.claim('work')
  await node.limit('work', { maxRunning: 121 })
  await node.jobs.createMany(payloads('work', 120))
  await node.end(2)
  await node.pulse()
  await node.claim('work')
  expect([await t.leased(), node.held.length]).toEqual([120, 120])
})

test('a claim that began before the limit was made counts before anybody leases by it', async () => {
  const t = await setup()
  const [slow, other] = [await t.startNode(), await t.startNode()]
  for (const node of [slow, other]) await node.handle('work', 3)
  const created = await slow.jobs.createMany(payloads('work', 6))
  // The claim of the one has begun, and is not committed.
  const blocker = await t.pool.connect()
  await blocker.query('select pg_advisory_lock(815)')
  await t.query(`create function hold() returns trigger language plpgsql as $$ begin
    perform pg_advisory_xact_lock_shared(815); return new; end $$`)
  await t.query(
    'create trigger hold before update on runs for each row when (new.holder is not null) execute function hold()',
  )
  const claiming = slow.claim('work')
  await expect.poll(() => waiting(t.query), { interval: 5 }).toBe(1)
  const limiting = other.limit('work', { maxRunning: 4 })
  await expect.poll(async () => (await t.query('select from limits')).length, { interval: 5 }).toBe(1)
  // Whoever claims by the new limit meanwhile gets nothing: three that he does not see are about to be leased.
  await other.pulse()
  await other.claim('work')
  expect(other.held).toHaveLength(0)
  await blocker.query('select pg_advisory_unlock(815)')
  blocker.release()
  await claiming
  await limiting
  await t.query('drop function hold cascade')
  other.clock.advance(20)
  await other.claim('work')
  expect([slow.held.length, other.held.length, await t.leased(), created.length]).toEqual([3, 1, 4, 6])
})

const waiting = async (query: (text: string) => Promise<{ n: number }[]>): Promise<number> =>
  (
    await query(`select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted and objid = 815`)
  )[0]?.n ?? 0

test('a limit that is raised or lowered counts with the next claim, and one that is removed is gone', async () => {
  const t = await setup()
  const node = await t.startNode()
  await node.handle('work', 50)
  await node.limit('work', { maxRunning: 4 })
  await node.jobs.createMany(payloads('work', 40))
  await node.pulse()
  await node.claim('work')
  expect(await t.leased()).toBe(4)
  await node.limit('work', { maxRunning: 7 })
  await node.claim('work')
  expect(await t.leased()).toBe(7)
  await node.limit('work', { maxRunning: 2 })
  await node.end(4)
  await node.claim('work')
  expect(await t.leased()).toBe(3)
  await node.end(2)
  await node.claim('work')
  expect(await t.leased()).toBe(2)
  await node.limit('work', { maxRunning: null })
  expect(await t.query('select from limits')).toEqual([])
  node.clock.advance(1_000)
  await node.claim('work')
  await node.claim('work')
  expect(await t.leased()).toBe(34)
})

test('the slot of a worker that died is free when its lease has expired', async () => {
  const t = await setup()
  const [dead, other] = [await t.startNode(), await t.startNode()]
  for (const node of [dead, other]) await node.handle('work')
  await dead.limit('work', { maxRunning: 1 })
  await dead.jobs.createMany(payloads('work', 2))
  for (const node of [dead, other]) await node.pulse()
  await dead.claim('work')
  await other.claim('work')
  expect([dead.held.length, other.held.length]).toEqual([1, 0])
  for (const node of [dead, other]) node.clock.advance(30_001)
  await other.reap()
  await other.pulse()
  await other.claim('work')
  expect([other.held.length, await t.leased()]).toEqual([1, 1])
})

test('runs that may be performed at most once, and lease calls of workers, stay within the limit too', async () => {
  const t = await setup()
  const node = await t.startNode()
  await node.limit('work', { maxRunning: 5 })
  const jobs = payloads('work', 10).map((job, i) => (i % 2 ? { ...job, delivery: 'at_most_once' } : job))
  await node.jobs.createMany(jobs)
  const lease = (workerId: string, max: number) =>
    node.tenant.workers.lease('work', { workerId, max, waitMs: 0, leaseMs: 30_000 }, new AbortController().signal)
  const given = await Promise.all([lease('a', 4), lease('b', 4)])
  node.clock.advance(2_000)
  given.push(await lease('c', 4))
  expect(given.reduce((sum, { runs }) => sum + runs.length, 0)).toBe(5)
  expect(await t.leased()).toBe(5)
  node.clock.advance(2_000)
  expect((await lease('d', 4)).runs).toEqual([])
})

test('a claim that outlasts the wait for a new limit is counted once it is committed', async () => {
  const t = await setup()
  const [slow, other] = [await t.startNode(), await t.startNode()]
  for (const node of [slow, other]) await node.handle('work', 10)
  await slow.jobs.createMany(payloads('work', 3))
  const blocker = await t.pool.connect()
  await blocker.query('select pg_advisory_lock(816)')
  await t.query(`create function hold() returns trigger language plpgsql as $$ begin
    perform pg_advisory_xact_lock_shared(816); return new; end $$`)
  await t.query(
    'create trigger hold before update on runs for each row when (new.holder is not null) execute function hold()',
  )
  const claiming = slow.claim('work')
  await expect
    .poll(
      async () =>
        (
          await t.query<{ n: number }>(
            `select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted and objid = 816`,
          )
        )[0]?.n,
      { interval: 5 },
    )
    .toBe(1)
  await other.limit('work', { maxRunning: 4 })
  other.clock.advance(3_000)
  await other.pulse()
  await other.claim('work')
  await blocker.query('select pg_advisory_unlock(816)')
  blocker.release()
  await claiming
  await t.query('drop function hold cascade')
  expect([slow.held.length, await t.leased()]).toEqual([3, 3])
  await slow.jobs.createMany(payloads('work', 20))
  other.clock.advance(20)
  await other.pulse()
  await other.claim('work')
  expect(await t.leased()).toBeLessThanOrEqual(4)
})
