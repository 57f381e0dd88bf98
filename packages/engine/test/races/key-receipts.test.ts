import { expect, test } from 'vitest'
import { claimWithRoom } from '../../src/attempts/claim-with-room.sql.ts'
import { runIdOf } from '../../src/job/ids.ts'
import { OUTCOME } from '../../src/job/states.ts'
import { Receipts } from '../../src/leases/receipts.sql.ts'
import type { Database, Queryable } from '../../src/store/database.ts'
import { renderFor, type Statement } from '../../src/store/statement.ts'
import { claimed, LEASE_MS, MANY } from './packed.ts'
import { MINUTE, type Node, setup } from './setup.ts'

const KEYS = 4
const LIMIT = 60
const jobs = (count: number, limit = LIMIT) =>
  Array.from({ length: count }, (_, i) => ({
    ...{ queue: 'work', payload: i, concurrency: { key: `key-${i % KEYS}`, limit } },
  }))
/** Live leases by key, from rows, receipts and history alone: not by what claims go by. */
const LEASED = `select l.name, count(*)::int as n from (
    select r.shard, r.limit_key from runs r where r.state = 1 and r.limit_key is not null
    union all
    select u.shard, u.limit_key from receipts c
    cross join lateral unnest(c.run_shards, c.job_ids, c.nominal_ats, c.limit_keys) as u (shard, job_id, nominal_at, limit_key)
    where not exists (select from attempts a where a.job_id = u.job_id and a.nominal_at = u.nominal_at and a.number = 1)
      and not exists (select from runs r where r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = u.nominal_at)) h
  join limits l on l.shard = h.shard and l.kind = 0 and l.key = h.limit_key group by 1 order by 1`

async function nodes() {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const queueId = await a.engine.registry.queueId(1, 'work')
  let holder = 0
  const claim = async (node: Node, limit = 1_000) => {
    const now = node.clock.now()
    const lease = { holder: String(++holder), now, leaseUntil: now + LEASE_MS }
    const level = { priority: 5, watermark: Number.MIN_SAFE_INTEGER }
    const { claimed } = await claimWithRoom(node.db, { queueId, ...lease, levels: [level], limit })
    return claimed.sort((a, b) => a.turn - b.turn).map((one) => one.lease)
  }
  const leased = async () => (await t.query<{ name: string; n: number }>(LEASED)).map(({ n }) => n)
  const count = async (what: string) => (await t.query<{ n: number }>(`select count(*)::int as n from ${what}`))[0]?.n
  const deliver = (node: Node) => async (leases: Awaited<ReturnType<typeof claim>>) => {
    const at = node.clock.now()
    await Promise.all(
      leases.map((fence) => node.engine.finisher.finished({ kind: 'succeeded', fence, startedAt: at, finishedAt: at })),
    )
  }
  return { t, a, b, claim, leased, count, end: deliver(a) }
}

test('many runs of keys that have room leave one receipt and no rows, and count for the next claim', async () => {
  const { a, b, claim, leased, count } = await nodes()
  await a.jobs.createMany(jobs(MANY, 40))
  expect(await claim(a)).toHaveLength(MANY)
  expect([await count('runs'), await count('receipts'), await leased()]).toEqual([0, 1, [30, 30, 30, 30]])
  await a.jobs.createMany(jobs(MANY, 40))
  // Of each key 10 slots are left, and 30 runs are ready: that is not plain, and is left to the transaction.
  expect(await claim(b)).toHaveLength(0)
  expect(await claim(b, 40)).toHaveLength(40)
  expect(await leased()).toEqual([40, 40, 40, 40])
  expect(await claim(b, 4)).toHaveLength(0)
})

test('a key of which nothing can stand in a receipt is claimed beside those that leave one', async () => {
  const { a, claim, leased, count } = await nodes()
  await a.jobs.createMany(jobs(MANY))
  const once = {
    queue: 'work',
    payload: 1,
    delivery: 'at_most_once' as const,
    concurrency: { key: 'key-once', limit: 2 },
  }
  await a.jobs.createMany([once, once])
  expect(await claim(a)).toHaveLength(MANY + 2)
  expect([await count('runs'), await count('receipts'), await leased()]).toEqual([2, 1, [30, 30, 30, 30, 2]])
})

test('what has ended in a receipt frees its slot at once, though the receipt stays and still lists it', async () => {
  const { a, b, claim, leased, count, end } = await nodes()
  await a.jobs.createMany(jobs(2 * MANY, 30))
  const first = await claim(a, MANY)
  expect(await claim(b, 4)).toHaveLength(0)
  await end(first.slice(0, 8))
  expect([await count('receipts'), await leased()]).toEqual([1, [28, 28, 28, 28]])
  expect(await claim(b, 8)).toHaveLength(8)
  expect(await leased()).toEqual([30, 30, 30, 30])
})

test('a dead node keeps its slots until its leases are closed, and its runs keep their keys', async () => {
  const { t, a, b, claim, leased, count } = await nodes()
  await a.jobs.createMany(jobs(MANY, 30))
  await claim(a)
  await a.jobs.createMany(jobs(4, 30))
  expect(await claim(b)).toHaveLength(0)
  b.clock.advance(LEASE_MS)
  expect(await b.reap()).toBe(MANY)
  expect([await count('receipts'), await leased()]).toEqual([0, []])
  const [row] = await t.query(
    'select count(*)::int as n, count(limit_key)::int as keyed, min(delivery) as delivery from runs',
  )
  expect(row).toEqual({ n: MANY + 4, keyed: MANY + 4, delivery: 2 })
})

test('a run that leaves its receipt as a row is counted once', async () => {
  const { a, b, claim, leased } = await nodes()
  await a.jobs.createMany(jobs(MANY, 31))
  const leases = await claim(a)
  await new Receipts(a.db).makeRows(leases.slice(0, 12))
  expect(await leased()).toEqual([30, 30, 30, 30])
  await a.jobs.createMany(jobs(8, 31))
  expect(await claim(b, 4)).toHaveLength(4)
  expect(await claim(b, 4)).toHaveLength(0)
})

test('history of a run that somebody asked for before frees nothing of the one in a receipt', async () => {
  const { a, b, claim, leased, end } = await nodes()
  const limit = MANY / KEYS
  const [first] = await a.jobs.createMany(jobs(MANY, limit).map((job) => ({ ...job, delay: '1m' })))
  await a.jobs.trigger((first as { jobId: string }).jobId)
  const asked = await claim(a)
  expect(asked).toHaveLength(1)
  await end(asked)
  for (const node of [a, b]) node.clock.advance(MINUTE)
  await a.readTimers()
  while ((await a.promote()) > 0);
  expect(await claim(a)).toHaveLength(MANY)
  await a.jobs.createMany(jobs(KEYS, limit))
  expect(await claim(b)).toHaveLength(0)
  expect(await leased()).toEqual(Array(KEYS).fill(limit))
})

test('a run that waits for a slot says who has it, though they stand in a receipt', async () => {
  const { a, b, claim } = await nodes()
  await a.jobs.createMany(jobs(MANY, MANY / KEYS))
  const ids = (await claim(a)).map(({ jobId, nominalAt }) => runIdOf(jobId, nominalAt))
  const [late] = await a.jobs.createMany(jobs(1, MANY / KEYS))
  await b.handle('work', () => {})
  await b.engine.pulse.runOnce()
  await b.claim('work')
  const [waiting] = (await b.runs.list({ jobId: (late as { jobId: string }).jobId })).items
  const found = await b.runs.get(waiting?.id as string)
  expect(found).toMatchObject({ status: 'blocked', limitedBy: { key: 'key-0', limit: MANY / KEYS } })
  expect(found?.limitedBy?.heldBy).toHaveLength(5)
  for (const id of found?.limitedBy?.heldBy ?? []) expect(ids).toContain(id)
})

test('a limit that is lowered while many are in receipts lets nothing through until enough have ended', async () => {
  const { a, b, claim, leased, end } = await nodes()
  await a.jobs.createMany(jobs(MANY, 40))
  const leases = await claim(a)
  await a.jobs.createMany(jobs(8, 20))
  expect(await claim(b, 8)).toHaveLength(0)
  await end(leases.slice(0, 48))
  expect(await leased()).toEqual([18, 18, 18, 18])
  expect(await claim(b, 8)).toHaveLength(8)
})

test('a claim that began before another of the key was committed, and takes its row after that, leases nothing of it', async () => {
  const { t, a, b, claim, leased } = await nodes()
  await a.jobs.createMany(Array(10).fill({ queue: 'work', payload: 1, concurrency: { key: 'acme', limit: 6 } }))
  const gate = await t.connect()
  await gate.query('select pg_advisory_lock(815)')
  const client = await t.connect()
  // Stopped when its snapshot is taken, and before it takes the rows of keys.
  const stopped: Queryable = {
    query: async <Row extends readonly unknown[]>({ name, text }: Statement, values: readonly unknown[]) => {
      const waits = text
        .replace(
          'paused as materialized (',
          'gate as materialized (select pg_advisory_xact_lock(815)), paused as materialized (',
        )
        .replace('from picked p group by', 'from gate cross join picked p group by')
      const sent = { text: renderFor(t.schema, { name: `${name}_stopped`, text: waits }), values: [...values] }
      return (await client.query({ ...sent, rowMode: 'array' as const })).rows as unknown as Row[]
    },
    execute: () => Promise.reject(new Error('not asked for')),
  }
  await client.query(`set search_path to ${t.schema}`)
  const late = claim({ ...b, db: stopped as Database }, 4)
  await t.untilBlocked()
  const first = await claim(a, 4)
  expect(first).toHaveLength(4)
  await gate.query('select pg_advisory_unlock(815)')
  expect(await late).toHaveLength(0)
  expect(await leased()).toEqual([4])
  expect(await claim(b, 2)).toHaveLength(2)
  expect(await claim(b, 1)).toHaveLength(0)
})

test('however many claim at once, nobody sees more leases of a key than its limit', async () => {
  const { a, b, claim, leased, end, count } = await nodes()
  await a.jobs.createMany(jobs(600))
  for (let round = 0; round < 6; round++) {
    const taken = await Promise.all([claim(a, 120), claim(b, 100), claim(a, 30), claim(b, 120)])
    for (const n of await leased()) expect(n).toBeLessThanOrEqual(LIMIT)
    await end(taken.flat())
  }
  expect(await count(`attempts where outcome = ${OUTCOME.succeeded}`)).toBe(await count('attempts'))
  const twice = await count('(select job_id from attempts group by job_id having count(*) > 1) as twice')
  expect(twice).toBe(0)
})

test('runs of keys that a handler performs end from their receipt, and a failed one keeps its key', async () => {
  const { t, a } = await nodes()
  const packed = await claimed(a, jobs(MANY))
  expect(packed.runs.size).toBe(MANY)
  expect(await t.query('select count(*)::int as n from runs')).toEqual([{ n: 0 }])
  packed.of(3).end(() => {
    throw new Error('no')
  })
  await packed.endAll()
  expect(await t.query('select state, delivery, limit_key is not null as keyed from runs')).toEqual([
    { state: 2, delivery: 2, keyed: true },
  ])
  expect(await t.query('select count(*)::int as n from receipts')).toEqual([{ n: 0 }])
})
