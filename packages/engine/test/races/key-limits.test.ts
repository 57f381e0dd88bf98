import { expect, onTestFinished, test } from 'vitest'
import { claimRuns } from '../../src/attempts/claim-runs.sql.ts'
import { LimitedClaim } from '../../src/attempts/claim-within-limits.ts'
import { finishSucceeded } from '../../src/attempts/finish.sql.ts'
import { purgeKeyLimits, purgeUnusedKeys, putKeyLimits } from '../../src/concurrency/key-limits.sql.ts'
import { RUN_STATE } from '../../src/job/states.ts'
import type { Transaction } from '../../src/store/database.ts'
import { type Node, START, setup } from './setup.ts'
import { tokensOf, workerOf } from './worker.ts'

const DAY = 86_400_000
const level = { priority: 5, watermark: 0 }

async function nodes() {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const queueId = await a.engine.registry.queueId(1, 'mail')
  const create = async (key: string, count: number, limit: number) => {
    const made = []
    for (let i = 0; i < count; i++) {
      made.push(await a.jobs.create({ queue: 'mail', payload: i, concurrency: { key, limit } }))
      a.clock.advance(1)
    }
    return made.map(({ jobId }) => jobId)
  }
  let holder = 0
  const claimIn = async (tx: Transaction, node: Node, limit = 10) => {
    const now = node.clock.now()
    const places = [{ holder: String(++holder), leaseMs: 30_000 }]
    const claim = new LimitedClaim(
      { cancelGraceMs: 1_000, faulty: { keys: [] } },
      { kind: 'keyed', queueId, now, levels: [level], limit, places, freePlaces: limit },
      { maxRounds: 3, looked: new Set() },
    )
    await claim.perform(tx, limit, false)
    return claim.claimed
  }
  const claim = (node: Node, limit?: number) => node.db.transaction((tx) => claimIn(tx, node, limit))
  /** A claim that has done everything but commit. */
  const openClaim = async (node: Node, limit?: number) => {
    let commit = () => {}
    const gate = new Promise<void>((resolve) => {
      commit = resolve
    })
    let claimed = () => {}
    const isClaimed = new Promise<void>((resolve) => {
      claimed = resolve
    })
    const done = node.db.transaction(async (tx) => {
      const leases = await claimIn(tx, node, limit)
      claimed()
      await gate
      return leases
    })
    done.catch(() => {})
    onTestFinished(() => commit())
    await isClaimed
    return {
      commit: () => {
        commit()
        return done
      },
    }
  }
  const counts = async () => {
    const rows = await t.query<{ name: string; state: number; n: number }>(
      `select l.name, r.state, count(*)::int as n from runs r join limits l on l.shard = r.shard and l.key = r.limit_key group by 1, 2 order by 1, 2`,
    )
    return rows.map(({ name, state, n }) => [name, state, n])
  }
  const { ready, leased, limited } = RUN_STATE
  return { t, a, b, create, claim, openClaim, counts, ready, leased, limited }
}

test('of two who claim runs of one key at once, the second leaves them alone and takes those of other keys', async () => {
  const { a, b, create, claim, openClaim, counts, ready, leased, limited } = await nodes()
  await create('acme', 4, 2)
  await create('other', 1, 2)
  const first = await openClaim(a, 2)
  expect(await claim(b)).toHaveLength(1)
  expect(await first.commit()).toHaveLength(2)
  expect(await counts()).toEqual([
    ['acme', ready, 2],
    ['acme', leased, 2],
    ['other', leased, 1],
  ])
  expect(await claim(b)).toHaveLength(0)
  expect(await counts()).toEqual([
    ['acme', leased, 2],
    ['acme', limited, 2],
    ['other', leased, 1],
  ])
})

test('a run that ends after the leases were counted frees its slot for the next claim', async () => {
  const { t, a, b, create, claim, counts, leased, limited } = await nodes()
  await create('acme', 1, 2)
  const [first] = await claim(a)
  const more = await create('acme', 3, 2)
  const hold = await t.holdAt('update', 'runs', more[0] as string)
  const claiming = claim(a)
  await t.untilBlocked()
  const end = { kind: 'succeeded' as const, startedAt: START, finishedAt: START }
  await finishSucceeded(b.db, [{ ...end, fence: first?.lease as never }])
  await hold.release()
  expect(await claiming).toHaveLength(1)
  expect(await counts()).toEqual([
    ['acme', leased, 1],
    ['acme', limited, 2],
  ])
  // Nobody was told of the end: the sweep finds what waits for nothing.
  b.engine.waking.sweep.own([0, 1])
  b.engine.waking.sweep.saw({ hasBlocked: false, hasLimited: true })
  await b.engine.waking.sweep.runOnce()
  expect(await b.engine.waking.waker.runOnce()).toMatchObject({ woken: 1 })
  expect(await claim(b)).toHaveLength(1)
  expect(await counts()).toEqual([
    ['acme', leased, 2],
    ['acme', limited, 1],
  ])
})

test('a run that is moved aside while the last one ends is woken after the claim, without the sweep', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const create = (payload: number) =>
    a.jobs.create({ queue: 'work', payload, concurrency: { key: 'acme', limit: 1 } }).finally(() => a.clock.advance(1))
  await create(1)
  const first = await workerOf(a).lease()
  const { jobId } = await create(2)
  const hold = await t.holdAt('update', 'runs', jobId)
  const leasing = workerOf(a, 'other').lease()
  await t.untilBlocked()
  // It ends after it was counted, and finds nobody who waits.
  expect(await workerOf(b).complete(tokensOf(first))).toEqual(['ok'])
  expect(await b.engine.waking.waker.runOnce()).toMatchObject({ woken: 0 })
  await hold.release()
  expect((await leasing).runs).toHaveLength(0)
  expect(await a.engine.waking.waker.runOnce()).toMatchObject({ woken: 1 })
  expect((await workerOf(a, 'other').lease()).runs).toHaveLength(1)
})

test('a limit is lowered after the claim that holds it, and then lets nothing through until enough have ended', async () => {
  const { t, a, b, create, claim, openClaim, counts, leased, limited } = await nodes()
  const { jobId } = await a.jobs.create({
    ...{ queue: 'mail', payload: 0, cron: '0 0 1 6 *', concurrency: { key: 'acme', limit: 3 } },
  })
  await create('acme', 5, 3)
  const open = await openClaim(a)
  const lowered = b.jobs.update(jobId, { concurrency: { key: 'acme', limit: 1 } })
  await t.untilBlocked()
  expect(await open.commit()).toHaveLength(3)
  await lowered
  expect(await claim(b)).toHaveLength(0)
  expect(await counts()).toEqual([
    ['acme', leased, 3],
    ['acme', limited, 2],
  ])
  expect(await b.engine.waking.waker.runOnce()).toMatchObject({ woken: 0 })
})

test('a key that somebody holds delays nobody else, and nothing of it is moved', async () => {
  const { t, b, create, claim, counts, ready, leased } = await nodes()
  await create('acme', 30, 2)
  await create('other', 2, 2)
  const client = await t.connect()
  await client.query('begin')
  await client.query(`select from ${t.schema}.limits where name = 'acme' for update`)
  expect(await claim(b, 5)).toHaveLength(2)
  expect(await counts()).toEqual([
    ['acme', ready, 30],
    ['other', leased, 2],
  ])
  await client.query('rollback')
  expect(await claim(b, 5)).toHaveLength(2)
})

test('creating jobs that say the same of a key waits for no claim, and such that say something else for its commit', async () => {
  const { t, a, b, create, openClaim } = await nodes()
  await create('acme', 2, 2)
  const open = await openClaim(a, 1)
  await b.jobs.create({ queue: 'mail', payload: 1, concurrency: { key: 'acme', limit: 2 } })
  const other = b.jobs.create({ queue: 'mail', payload: 1, concurrency: { key: 'acme', limit: 7 } })
  await t.untilBlocked()
  await open.commit()
  await other
  expect(await t.query('select max_running from limits')).toEqual([{ max_running: 7 }])
})

test('of many jobs of one key in one call the last says what its limit is', async () => {
  const { t, a } = await nodes()
  const jobs = [3, 5, 4].map((limit) => ({ queue: 'mail', payload: 1, concurrency: { key: 'acme', limit } }))
  await a.jobs.createMany(jobs)
  expect(await t.query('select name, max_running from limits')).toEqual([{ name: 'acme', max_running: 4 }])
})

test('only rows of keys that nothing needs are purged, and one that is claimed by at that moment stays', async () => {
  const { t, a, b, create, openClaim } = await nodes()
  await create('used', 1, 1)
  const limit = { shard: 0, tenantId: 1, slots: { maxRunning: 1, onLimit: 0 }, rate: undefined }
  await putKeyLimits(a.db, [{ ...limit, key: '1', name: 'unused' }], START)
  const purge = () =>
    b.db.transaction((tx) =>
      purgeKeyLimits(tx, { after: { shard: -1, key: '0' }, usedBefore: START + 2 * DAY, limit: 10 }),
    )
  const open = await openClaim(a)
  await purge()
  expect(await t.query('select name from limits')).toEqual([{ name: 'used' }])
  await open.commit()
  await purge()
  expect(await t.query('select name from limits')).toEqual([{ name: 'used' }])
})

test('workers elsewhere get no more of a key than its limit, from whatever node, and who completes one frees its slot', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const concurrency = { key: 'acme', limit: 2 }
  await a.jobs.createMany([1, 2, 3, 4].map((payload) => ({ queue: 'work', payload, concurrency })))
  const first = await workerOf(a).lease({ max: 10 })
  expect(first.runs).toHaveLength(2)
  expect((await workerOf(b, 'other').lease({ max: 10 })).runs).toHaveLength(0)
  // The completion goes to the node that did not give it out.
  expect(await workerOf(b).complete(tokensOf(first).slice(0, 1))).toEqual(['ok'])
  expect(await b.engine.waking.waker.runOnce()).toMatchObject({ woken: 1 })
  expect((await workerOf(b, 'other').lease({ max: 10 })).runs).toHaveLength(1)
})

test('who is to stop for another is asked by the next claim if somebody held it just then', async () => {
  const { t, a, claim } = await nodes()
  const one = { queue: 'mail', payload: 1, concurrency: { key: 'acme', limit: 1, onLimit: 'cancel_oldest' as const } }
  const { jobId } = await a.jobs.create(one)
  await claim(a)
  a.clock.advance(10)
  await a.jobs.create(one)
  const client = await t.connect()
  await client.query('begin')
  await client.query(`select from ${t.schema}.runs where job_id = $1 for update`, [jobId])
  expect(await claim(a)).toHaveLength(0)
  await client.query('rollback')
  expect(await claim(a)).toHaveLength(0)
  expect(await t.query('select cancel_requested as is_asked from runs order by nominal_at')).toEqual([
    { is_asked: true },
    { is_asked: false },
  ])
})

test('a claim waits for no open transaction that makes the row of a key, and takes what has others', async () => {
  const { t, a, create, claim } = await nodes()
  await create('acme', 1, 1)
  await create('other', 2, 1)
  await t.query('delete from limits')
  const client = await t.connect()
  await client.query('begin')
  await client.query(`set search_path = ${t.schema}`)
  await a.jobs.create({ queue: 'mail', payload: 1, concurrency: { key: 'acme', limit: 1 } }, { tx: client } as never)
  expect(await claim(a)).toHaveLength(1)
  await client.query('commit')
  expect(await claim(a)).toHaveLength(1)
  expect(await t.query('select name, max_running from limits order by name')).toEqual([
    { name: 'acme', max_running: 1 },
    { name: 'other', max_running: 1 },
  ])
})

test('a key that several jobs share keeps its last limit while any of them waits for its time', async () => {
  const { t, a, b } = await nodes()
  const runAt = new Date(START + 5 * DAY)
  for (const limit of [10, 2])
    await a.jobs.create({ queue: 'mail', payload: 1, runAt, concurrency: { key: 'acme', limit } })
  const { jobId } = await a.jobs.create({ queue: 'mail', payload: 1, runAt, concurrency: { limit: 3 } })
  await purgeUnusedKeys(b.db.bulk, START + 3 * DAY)
  expect(await t.query('select name, max_running from limits')).toEqual([{ name: 'acme', max_running: 2 }])
  await a.jobs.cancel(jobId)
})

test('a row that is gone is made from what the newest job says that says anything', async () => {
  const { t, a, create, claim } = await nodes()
  const [gone] = await create('acme', 1, 10)
  await create('acme', 1, 10)
  await create('acme', 2, 2)
  await t.query('delete from limits')
  await t.query(`delete from specs where job_id = '${gone}'`)
  expect(await claim(a, 1)).toHaveLength(1)
  expect(await t.query('select name, max_running from limits')).toEqual([{ name: 'acme', max_running: 2 }])
})

test('a limit that a job gets later counts for the runs that it has, also for those at work', async () => {
  const { t, a, claim } = await nodes()
  const { jobId } = await a.jobs.create({ queue: 'mail', payload: 0, cron: '0 0 1 6 *', overlap: 'allow' })
  for (let i = 0; i < 4; i++) {
    await a.jobs.trigger(jobId)
    a.clock.advance(1)
  }
  const plain = {
    queueId: await a.engine.registry.queueId(1, 'mail'),
    now: a.clock.now(),
    delivery: 'at_least_once' as const,
  }
  const claimPlain = async (holder: string, limit: number) =>
    (
      await claimRuns(a.db, {
        ...plain,
        places: [{ holder, leaseMs: 30_000 }],
        levels: [level],
        limit,
        freePlaces: limit,
      })
    ).claimed
  await claimPlain('77', 1)
  await a.jobs.update(jobId, { concurrency: { limit: 2 } })
  expect(await claimPlain('78', 9)).toEqual([])
  expect(await claim(a)).toHaveLength(1)
  expect(await t.query('select count(*)::int as leased from runs where state = 1')).toEqual([{ leased: 2 }])
})
