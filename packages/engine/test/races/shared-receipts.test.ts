import { expect, test } from 'vitest'
import { claimForSeveral } from '../../src/attempts/claim-shared.sql.ts'
import { OUTCOME } from '../../src/job/states.ts'
import { Receipts } from '../../src/leases/receipts.sql.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { startLossyProxy } from './lossy-proxy.ts'
import { LEASE_MS } from './packed.ts'
import { type Node, setup } from './setup.ts'
import { tokensOf, workerOf } from './worker.ts'

/** So many calls as one claim serves from a receipt. */
const CALLS = 10

async function setupNodes() {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  const history = () =>
    t.query<{ number: number; outcome: number; n: number }>(
      'select number, outcome, count(*)::int as n from attempts group by 1, 2 order by 1, 2',
    )
  const count = async (what: string) => (await t.query<{ n: number }>(`select count(*)::int as n from ${what}`))[0]?.n
  const advance = (ms: number) => {
    for (const one of [node, other]) one.clock.advance(ms)
  }
  return { ...t, node, other, history, count, advance }
}

/** As many workers as this wait at the node, each for one run, and get it in one claim. */
async function leasedAtOnce(node: Node, options: { requestId?: string; leaseMs?: (i: number) => number } = {}) {
  const { requestId = 'r', leaseMs = () => LEASE_MS } = options
  const leasing = Array.from({ length: CALLS }, (_, i) =>
    workerOf(node, `w${i}`).lease({ waitMs: 20_000, requestId, leaseMs: leaseMs(i) }),
  )
  await expect.poll(() => node.engine.remote.calls.waiting).toBe(CALLS)
  await node.jobs.createMany(Array.from({ length: CALLS }, (_, payload) => ({ queue: 'work', payload })) as never)
  return (await Promise.all(leasing)).map((answer) => tokensOf(answer)[0] ?? '')
}

const ok = (n: number) => Array(n).fill('ok')
const succeeded = (n: number) => ({ number: 1, outcome: OUTCOME.succeeded, n })

test('what several calls get at once stands in one receipt that says whose each run is, and ends there', async () => {
  const t = await setupNodes()
  for (let round = 1; round <= 4; round++) {
    const tokens = await leasedAtOnce(t.node, { requestId: `r${round}` })
    expect(await t.count('runs')).toBe(0)
    const [newest] = await t.query<{ holders: string[] }>(
      'select holders from receipts order by leased_at desc limit 1',
    )
    expect([...(newest?.holders ?? [])].sort()).toEqual(tokens.map(holderOf).sort())
    for (const [i, token] of tokens.entries()) expect(await workerOf(t.node, `w${i}`).complete([token])).toEqual(ok(1))
    expect(await workerOf(t.node).complete(tokens)).toEqual(ok(CALLS))
    expect(await workerOf(t.other).complete(tokens)).toEqual(ok(CALLS))
    t.advance(1)
  }
  // History names the call, by which a repeated completion is found.
  expect(await t.count('(select distinct holder from attempts) holders')).toBe(4 * CALLS)
  expect(await t.history()).toEqual([succeeded(4 * CALLS)])
  // Spent ones do not pile up.
  expect(await t.count('receipts')).toBe(0)
})

test('one of several calls that is repeated, on either node, is answered with its lease; the others end as before', async () => {
  const t = await setupNodes()
  const tokens = await leasedAtOnce(t.node)
  t.advance(1)
  for (const [i, node] of [t.node, t.other].entries()) {
    const again = await workerOf(node, `w${i}`).lease({ requestId: 'r' })
    expect(tokensOf(again)).toEqual([tokens[i]])
  }
  expect(await workerOf(t.other, 'w1').complete([tokens[1] ?? ''])).toEqual(ok(1))
  expect(await workerOf(t.node).complete(tokens.filter((_, i) => i !== 1))).toEqual(ok(CALLS - 1))
  expect(await t.history()).toEqual([succeeded(CALLS)])
  expect(await t.count('runs')).toBe(0)
})

test('completions of several calls that reach another node at once are all told ok', async () => {
  const t = await setupNodes()
  const tokens = await leasedAtOnce(t.node)
  const said = await Promise.all(tokens.map((token, i) => workerOf(t.other, `w${i}`).complete([token])))
  expect(said.flat()).toEqual(ok(CALLS))
  expect(await t.history()).toEqual([succeeded(CALLS)])
})

test('a call of several that comes back when its run has ended gets nothing of the others', async () => {
  const t = await setupNodes()
  const tokens = await leasedAtOnce(t.node)
  expect(await workerOf(t.node).complete(tokens.slice(0, 1))).toEqual(ok(1))
  t.advance(1)
  for (const node of [t.node, t.other]) expect((await workerOf(node, 'w0').lease({ requestId: 'r' })).runs).toEqual([])
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([0, 1])
  expect(await workerOf(t.node).complete(tokens.slice(1))).toEqual(ok(CALLS - 1))
  expect(await t.history()).toEqual([succeeded(CALLS)])
})

test('runs of several calls are renewed, ended, given back and failed through any node, while the others stay', async () => {
  const t = await setupNodes()
  const tokens = await leasedAtOnce(t.node)
  const [here, elsewhere] = [workerOf(t.node), workerOf(t.other)]
  t.advance(LEASE_MS - 1)
  expect(await here.heartbeat(tokens.slice(0, 2))).toEqual(ok(2))
  expect(await here.release(tokens.slice(0, 1))).toEqual(ok(1))
  expect(await here.complete(tokens.slice(2, 3), { status: 'failed', error: { message: 'no' } })).toEqual(ok(1))
  expect(await elsewhere.heartbeat(tokens.slice(3))).toEqual(ok(CALLS - 3))
  t.advance(LEASE_MS - 1)
  expect(await t.other.reap()).toBe(0)
  expect(await elsewhere.complete(tokens.slice(3, 5))).toEqual(ok(2))
  expect(await here.complete([...tokens.slice(1, 2), ...tokens.slice(5)])).toEqual(ok(CALLS - 4))
  expect(await t.history()).toEqual([
    succeeded(CALLS - 2),
    { number: 1, outcome: OUTCOME.failed, n: 1 },
    { number: 1, outcome: OUTCOME.released, n: 1 },
  ])
})

test('while somebody holds such a receipt, its runs may be kept and others are ended', async () => {
  const t = await setupNodes()
  const [spent, open] = [await leasedAtOnce(t.node), await leasedAtOnce(t.node, { requestId: 'open' })]
  expect(await workerOf(t.node).complete(spent)).toEqual(ok(CALLS))
  const somebody = await t.connect()
  await somebody.query('begin')
  await somebody.query('select from receipts for update')
  for (const requestId of ['a', 'b', 'c', 'd']) {
    const tokens = await leasedAtOnce(t.node, { requestId })
    expect(await workerOf(t.node).complete(tokens)).toEqual(ok(CALLS))
  }
  // What is spent is thrown away, and nobody waits for the one that is held.
  await t.node.engine.finisher.drained()
  expect(await workerOf(t.node).heartbeat(open)).toEqual(ok(CALLS))
  await somebody.query('rollback')
  expect(await workerOf(t.node).complete(open)).toEqual(ok(CALLS))
  expect(await t.history()).toEqual([succeeded(6 * CALLS)])
})

test('what one of several workers lets expire is performed again, and his late word is refused', async () => {
  const t = await setupNodes()
  const tokens = await leasedAtOnce(t.node)
  expect(await workerOf(t.node).complete(tokens.slice(0, 4))).toEqual(ok(4))
  t.advance(LEASE_MS)
  expect(await t.other.reap()).toBe(CALLS - 4)
  const again = await workerOf(t.other, 'late').lease({ max: 100 })
  expect(new Set(again.runs.map((run) => [run.attempt, run.failures].join()))).toEqual(new Set(['2,1']))
  expect(await workerOf(t.node).complete(tokens.slice(4))).toEqual(Array(CALLS - 4).fill('lease_lost'))
  expect(await workerOf(t.other, 'late').complete(tokensOf(again))).toEqual(ok(CALLS - 4))
})

test('a run of several calls that is cancelled is told to its worker alone', async () => {
  const t = await setupNodes()
  const tokens = await leasedAtOnce(t.node)
  const [first = '', ...rest] = tokens
  const runId = first.split('.').slice(0, 2).join('.')
  expect(await t.node.runs.cancel(runId)).toEqual({ status: 'canceling' })
  expect(await workerOf(t.node, 'w0').heartbeat([first])).toEqual(['cancel_requested'])
  expect(await workerOf(t.node, 'w0').complete([first], { status: 'canceled' })).toEqual(ok(1))
  expect(await workerOf(t.node).complete(rest)).toEqual(ok(CALLS - 1))
})

test('runs that were leased to several calls into a lost connection reach those that wait', async () => {
  const t = await setup()
  const proxy = await startLossyProxy()
  const node = await t.startNode(proxy.connection)
  const lost = proxy.lose('claim_packed_for_several', 'answered')
  const leasing = leasedAtOnce(node)
  await lost
  proxy.goOn()
  expect(await workerOf(node).complete(await leasing)).toEqual(ok(CALLS))
  expect(await t.query('select number from attempts')).toEqual(Array(CALLS).fill({ number: 1 }))
})

test('leases of different length are rows', async () => {
  const t = await setupNodes()
  const uneven = await leasedAtOnce(t.node, { leaseMs: (i) => LEASE_MS + i })
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([CALLS, 0])
  expect(await workerOf(t.node).complete(uneven)).toEqual(ok(CALLS))
})

test('of a claim for several tenants only those with many runs get receipts', async () => {
  const t = await setupNodes()
  await t.node.jobs.createMany(Array(24).fill({ queue: 'work' }) as never)
  await t.query(`insert into tenants (id, name) values (2, 'second'), (3, 'third')`)
  await t.query('update runs set tenant_id = 2 where job_id in (select job_id from runs limit 4)')
  await t.query('update runs set tenant_id = 3 where job_id in (select job_id from runs where tenant_id = 1 limit 8)')
  const { db, receipts, random } = { db: t.node.db, receipts: new Receipts(t.node.db), random: systemRandom }
  const now = t.node.clock.now()
  const claimed = await claimForSeveral(
    { db, receipts, random },
    {
      queueId: await t.node.engine.registry.queueId(1, 'work'),
      ...{ now, delivery: 'at_least_once', levels: [{ priority: 5, watermark: Number.MIN_SAFE_INTEGER }] },
      places: Array.from({ length: 24 }, (_, i) => ({ holder: `-${i + 1}`, leaseUntil: now + LEASE_MS })),
    },
  )
  expect(claimed).toHaveLength(24)
  expect(await t.query('select tenant_id, cardinality(holders) as n from receipts order by 1')).toEqual([
    { tenant_id: 1, n: 12 },
    { tenant_id: 3, n: 8 },
  ])
  expect(await t.query('select distinct tenant_id, state from runs')).toEqual([{ tenant_id: 2, state: 1 }])
})

test('where others take such receipts apart, what is leased next are rows for a while', async () => {
  const t = await setupNodes()
  const tokens = await leasedAtOnce(t.node)
  expect(await workerOf(t.other).complete(tokens.slice(0, 1))).toEqual(ok(1))
  expect(await workerOf(t.node).complete(tokens.slice(1))).toEqual(ok(CALLS - 1))
  expect(await workerOf(t.node).complete(await leasedAtOnce(t.node, { requestId: 'next' }))).toEqual(ok(CALLS))
  const rows = async (requestId: string) => {
    await leasedAtOnce(t.node, { requestId })
    return [await t.count('runs'), await t.count('receipts')]
  }
  expect(await rows('again')).toEqual([CALLS, 0])
  t.advance(10_000)
  expect(await rows('later')).toEqual([CALLS, 1])
})

test('so many such receipts may be open; what is leased besides are rows, until the leases of the first are over', async () => {
  const t = await setupNodes()
  for (let round = 0; round < 32; round++) await leasedAtOnce(t.node, { requestId: `r${round}` })
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([0, 32])
  const further = await leasedAtOnce(t.node, { requestId: 'further' })
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([CALLS, 32])
  expect(await workerOf(t.node).complete(further)).toEqual(ok(CALLS))
  t.advance(LEASE_MS)
  await leasedAtOnce(t.node, { requestId: 'later' })
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([0, 33])
})

const holderOf = (token: string): string => token.split('.')[3] ?? ''
