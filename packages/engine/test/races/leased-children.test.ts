import { expect, test } from 'vitest'
import { OUTCOME, RUN_STATE } from '../../src/job/states.ts'
import { startLossyProxy } from './lossy-proxy.ts'
import { claimed, LEASE_MS, MANY } from './packed.ts'
import { START, setup } from './setup.ts'

type Connection = Parameters<Awaited<ReturnType<typeof setup>>['startNode']>[0]

/** Parents have ended and are told of; all of it is work of one queue, which the node serves. */
async function setupChildren(children: object[], connection?: Connection) {
  const t = await setup()
  const node = await t.startNode(connection)
  const parents = children.map((_, i) => ({ ref: `p${i}`, queue: 'work', payload: 'parent' }))
  const jobs = children.map((child, i) => ({ queue: 'work', payload: 'child', after: { jobs: [`p${i}`] }, ...child }))
  const { runs, endAll } = await claimed(node, [...parents, ...jobs])
  expect(runs.size).toBe(children.length)
  await endAll()
  runs.clear()
  node.clock.advance(1_500)
  const tell = async () => {
    await node.engine.dependencies.deliverer.runOnce()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const rows = () => t.query('select state, attempt, extract(epoch from due_at)::float8 * 1000 as due from runs')
  return { ...t, node, runs, endAll, tell, rows }
}

const NOW = START + 1_500
const plain = (count: number) => Array<object>(count).fill({})
const historyOfChildren = 'select number, outcome, due_at from attempts order by due_at desc limit $1'

test('many children go into a receipt of the node that told them, and are never ready', async () => {
  const t = await setupChildren(plain(MANY))
  await t.tell()
  expect([t.runs.size, await t.rows()]).toEqual([MANY, []])
  expect(await t.query('select cardinality(job_ids) as n from receipts where leased_at = $1', [new Date(NOW)])).toEqual(
    [{ n: MANY }],
  )
  expect(new Set([...t.runs.values()].map(({ run }) => run.payload))).toEqual(new Set(['child']))
  await t.endAll()
  expect(await t.query(historyOfChildren, [MANY])).toEqual(
    Array(MANY).fill({ number: 1, outcome: OUTCOME.succeeded, due_at: new Date(NOW) }),
  )
  expect(await t.query('select count(*)::int as n from attempts')).toEqual([{ n: 2 * MANY }])
})

test('few children are leased as rows', async () => {
  const t = await setupChildren(plain(3))
  await t.tell()
  expect(t.runs.size).toBe(3)
  expect(await t.rows()).toEqual(Array(3).fill({ state: RUN_STATE.leased, attempt: 1, due: NOW }))
  await t.endAll()
  expect(await t.rows()).toEqual([])
  expect(t.node.engine.handlers.pools.map((pool) => pool.freeSlots())).toEqual([1_000])
})

test('a receipt is only for many that fit into it', async () => {
  const t = await setupChildren([...plain(90), ...Array<object>(30).fill({ timeout: '10s' })])
  await t.tell()
  expect(t.runs.size).toBe(120)
  expect(await t.rows()).toHaveLength(120)
})

test.each([
  { count: 3, leased: 3 },
  { count: 33, leased: 0 },
])('among other nodes $count children at once are leased: $leased', async ({ count, leased }) => {
  const t = await setupChildren(plain(count))
  const other = await t.startNode()
  // A node's own row is there for its second pulse.
  for (const node of [other, t.node, t.node]) await node.engine.pulse.runOnce()
  await t.tell()
  expect(t.runs.size).toBe(leased)
  expect(await t.rows()).toHaveLength(count)
})

test('where there is not room for all of them all become ready', async () => {
  const t = await setupChildren(plain(3))
  const queueId = await t.node.engine.registry.queueId(1, 'work')
  t.node.engine.handlers.setPaused(new Set([queueId]))
  await t.tell()
  expect(t.runs.size).toBe(0)
  expect(await t.rows()).toEqual(Array(3).fill({ state: RUN_STATE.ready, attempt: 0, due: NOW }))
  t.node.engine.handlers.setPaused(new Set())
  await t.node.claim('work')
  expect(t.runs.size).toBe(3)
})

test('while something of the queue waits children take their turn behind it', async () => {
  const t = await setupChildren(plain(3))
  await t.node.jobs.create({ queue: 'work', payload: 'before' })
  await t.tell()
  expect(t.runs.size).toBe(0)
  expect(await t.rows()).toHaveLength(4)
  await t.node.claim('work')
  expect([...t.runs.values()][0]?.run.payload).toBe('before')
})

test('a limit of the queue that the node has not heard of holds', async () => {
  const t = await setupChildren(plain(3))
  const queueId = await t.node.engine.registry.queueId(1, 'work')
  await t.query(
    `insert into limits (used_at, key, tenant_id, max_running, shard, kind, name) values (now(), $1, 1, 2, 0, 1, 'work')`,
    [queueId],
  )
  await t.tell()
  expect(t.runs.size).toBe(0)
  expect(await t.rows()).toEqual(Array(3).fill({ state: RUN_STATE.ready, attempt: 0, due: NOW }))
})

test('a child that may run once is leased as a row, one with a key becomes ready', async () => {
  const once = { delivery: 'at_most_once' }
  const keyed = { concurrency: { key: 'k', limit: 1 } }
  const t = await setupChildren([...plain(MANY), once, keyed])
  await t.tell()
  expect(t.runs.size).toBe(MANY + 1)
  const states = await t.query('select state, delivery from runs order by state')
  expect(states).toEqual([
    { state: RUN_STATE.ready, delivery: 2 },
    { state: RUN_STATE.leased, delivery: 1 },
  ])
})

test('children of a node that died right after the commit are performed by another, those that may run once are lost', async () => {
  const t = await setupChildren([...plain(MANY), { delivery: 'at_most_once', payload: 'once' }])
  // It dies here: nobody hands the leases over.
  t.node.engine.handlers.deliver = async () => {}
  await t.tell()
  expect(t.runs.size).toBe(0)
  const other = await t.startNode()
  other.clock.advance(1_500 + LEASE_MS)
  expect(await other.reap()).toBe(MANY + 1)
  const again = await claimed(other, [])
  expect([...again.runs.values()].map(({ run }) => run.attempt)).toEqual(Array(MANY).fill(2))
  await again.endAll()
  const lost = await t.query('select outcome from attempts where final and outcome <> 1')
  expect(lost).toEqual([{ outcome: OUTCOME.lost }])
  expect([await t.rows(), await t.query('select from receipts')]).toEqual([[], []])
})

test.each(['answered', 'sent'] as const)(
  'children whose transaction was committed, and that %s into a lost connection, are performed once',
  async (when) => {
    const proxy = await startLossyProxy()
    const t = await setupChildren(plain(MANY), proxy.connection)
    const lost = proxy.lose('commit', when)
    const telling = t.tell().catch(() => {})
    await lost
    proxy.goOn()
    await telling
    // Nobody knows yet whether it was committed: if it was not, the ends are still there.
    for (let i = 0; i < 3; i++) await t.tell()
    expect(t.runs.size).toBe(MANY)
    await t.endAll()
    expect(await t.query('select count(*)::int as n from attempts')).toEqual([{ n: 2 * MANY }])
    expect([await t.rows(), await t.query('select from outbox')]).toEqual([[], []])
  },
)
