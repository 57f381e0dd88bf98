import { expect, test } from 'vitest'
import { OUTCOME } from '../../src/job/states.ts'
import { startLossyProxy } from './lossy-proxy.ts'
import { LEASE_MS } from './many-runs.ts'
import { type Node, setup } from './setup.ts'
import { tokensOf, workerOf } from './worker.ts'

/** So many calls wait when one claim serves them. */
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
async function leasedAtOnce(node: Node) {
  const leasing = Array.from({ length: CALLS }, (_, i) =>
    workerOf(node, `w${i}`).lease({ waitMs: 20_000, requestId: 'r', leaseMs: LEASE_MS }),
  )
  await expect.poll(() => node.engine.remote.calls.waiting).toBe(CALLS)
  await node.jobs.createMany(Array.from({ length: CALLS }, (_, payload) => ({ queue: 'work', payload })) as never)
  return (await Promise.all(leasing)).map((answer) => tokensOf(answer)[0] ?? '')
}

const ok = (n: number) => Array(n).fill('ok')
const succeeded = (n: number) => ({ number: 1, outcome: OUTCOME.succeeded, n })

test('what several calls get at once is leased by one statement, each run to its call', async () => {
  const t = await setupNodes()
  const tokens = await leasedAtOnce(t.node)
  expect(await t.query('select distinct leased_at, state from runs')).toHaveLength(1)
  const holders = await t.query<{ holder: string }>('select holder::text from runs')
  expect(holders.map(({ holder }) => holder).sort()).toEqual(tokens.map(holderOf).sort())
  for (const [i, token] of tokens.entries()) expect(await workerOf(t.node, `w${i}`).complete([token])).toEqual(ok(1))
  // A completion that is said again, to either node, is answered by history, which names the call.
  expect(await workerOf(t.node).complete(tokens)).toEqual(ok(CALLS))
  expect(await workerOf(t.other).complete(tokens)).toEqual(ok(CALLS))
  expect(await t.count('(select distinct holder from attempts) holders')).toBe(CALLS)
  expect(await t.history()).toEqual([succeeded(CALLS)])
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

test('what one of several workers lets expire is performed again, and its late word is refused', async () => {
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
  const lost = proxy.lose('claim_runs', 'answered')
  const leasing = leasedAtOnce(node)
  await lost
  proxy.goOn()
  expect(await workerOf(node).complete(await leasing)).toEqual(ok(CALLS))
  expect(await t.query('select number from attempts')).toEqual(Array(CALLS).fill({ number: 1 }))
})

const holderOf = (token: string): string => token.split('.')[3] ?? ''
