import { expect, test } from 'vitest'
import { OUTCOME, RUN_STATE } from '../../src/job/states.ts'
import { getQueue } from '../../src/lookup/queues.sql.ts'
import { startLossyProxy } from './lossy-proxy.ts'
import { claimed, LEASE_MS, MANY, promoted } from './many-runs.ts'
import { MINUTE, type Node, START, setup } from './setup.ts'

type Connection = Parameters<Awaited<ReturnType<typeof setup>>['startNode']>[0]

async function setupClaimed() {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  const many = await claimed(node)
  const history = () =>
    t.query<{ number: number; outcome: number; n: number }>(
      'select number, outcome, count(*)::int as n from attempts group by 1, 2 order by 1, 2',
    )
  return { ...t, node, other, ...many, history }
}

/** Each parent is performed, and has a child in a queue that no node serves. */
async function setupFamilies(connection?: Connection) {
  const t = await setup()
  const [node, other] = [await t.startNode(connection), await t.startNode()]
  const families = Array.from({ length: MANY }, (_, i) => [
    { ref: `p${i}`, queue: 'work', payload: i },
    { queue: 'later', payload: i, after: { jobs: [`p${i}`] } },
  ])
  const many = await claimed(node, families.flat())
  expect(many.runs.size).toBe(MANY)
  const states = () => t.query('select state, count(*)::int as n from runs group by 1 order by 1')
  /** Of the i-th family. */
  const parent = (i: number) => many.of(2 * i)
  return { ...t, node, other, ...many, parent, states }
}

async function tellAll(node: Node): Promise<void> {
  node.engine.deliverer.look()
  while ((await node.engine.deliverer.runOnce()).waitMs === 0);
}

const succeeded = (n: number) => ({ number: 1, outcome: OUTCOME.succeeded, n })
const ALL_READY = [{ state: RUN_STATE.ready, n: MANY }]

test('every run of a large claim is seen as running until it ends', async () => {
  const t = await setupClaimed()
  const { run } = t.of(7)
  expect(await t.node.runs.get(run.id)).toMatchObject({ status: 'running', attempt: 1, failures: 0, attempts: [] })
  expect((await t.node.runs.list({ jobId: run.jobId })).items).toMatchObject([{ id: run.id, status: 'running' }])
  const all = await t.node.runs.list({ limit: 500 })
  expect(all.items.map(({ status }) => status)).toEqual(Array(MANY).fill('running'))
  const depth = async () =>
    (await getQueue({ db: t.node.db, engineDb: t.node.db }, { tenantId: 1, now: START }, 'work'))?.depth
  expect(await depth()).toEqual({ ready: 0, running: MANY, waiting: 0, isComplete: true })
  t.of(7).end()
  await t.node.engine.handlers.settled()
  expect(await t.node.runs.get(run.id)).toMatchObject({ status: 'succeeded', attempts: [{ number: 1 }] })
  expect(await depth()).toMatchObject({ running: MANY - 1 })
  await t.endAll()
  expect(await t.history()).toEqual([succeeded(MANY)])
})

test('what a dead node had not ended is performed again, and what it had ended is not', async () => {
  const t = await setupClaimed()
  for (let i = 0; i < 50; i++) t.of(i).end()
  await t.node.engine.handlers.settled()
  t.other.clock.advance(LEASE_MS - 1)
  expect(await t.other.reap()).toBe(0)
  t.other.clock.advance(1)
  expect(await t.other.reap()).toBe(MANY - 50)
  const again = await claimed(t.other, [])
  expect(again.runs.size).toBe(MANY - 50)
  expect(new Set([...again.runs.values()].map(({ run }) => run.attempt))).toEqual(new Set([2]))
  await again.endAll()
  // The dead node was only away: what it says now is refused.
  await t.endAll()
  expect(await t.history()).toEqual([
    succeeded(50),
    { number: 1, outcome: OUTCOME.failed, n: MANY - 50 },
    { number: 2, outcome: OUTCOME.succeeded, n: MANY - 50 },
  ])
  expect(await t.query('select from runs')).toEqual([])
})

test('a caller that holds a run for long keeps no others from ending, being kept or being reaped', async () => {
  const t = await setupClaimed()
  const client = await t.connect()
  await client.query('begin')
  const awaited = t.of(3).run.jobId
  await t.other.jobs.create({ queue: 'later', payload: 1, after: { jobs: [awaited] } }, { tx: client })
  for (let i = 0; i < 10; i++) t.of(i).end()
  await expect.poll(t.history).toEqual([succeeded(9)])
  t.node.clock.advance(LEASE_MS / 2)
  await t.node.engine.keeper.runOnce()
  t.other.clock.advance(LEASE_MS)
  expect(await t.other.reap()).toBe(0)
  await client.query('commit')
  await t.node.engine.handlers.settled()
  expect(await t.history()).toEqual([succeeded(10)])
  expect(await t.query('select job_id from outbox')).toEqual([{ job_id: awaited }])
})

test('one run of many can be canceled; its handler is told, and the others go on', async () => {
  const t = await setupClaimed()
  const { run } = t.of(5)
  expect(await t.other.jobs.cancel(run.jobId)).toEqual({ status: 'canceling' })
  t.node.clock.advance(LEASE_MS / 2)
  await t.node.engine.keeper.runOnce()
  expect(run.signal.reason).toBe('canceled')
  await t.endAll()
  expect(await t.history()).toEqual([succeeded(MANY - 1), { number: 1, outcome: OUTCOME.canceled, n: 1 }])
})

test('a heartbeat that is under way when the handler ends does not leave a second life behind', async () => {
  const t = await setupClaimed()
  const { run, end } = t.of(2)
  const hold = await t.holdAt('update', 'runs', run.jobId)
  const beating = run.heartbeat()
  await t.untilBlocked()
  end()
  const settled = t.node.engine.handlers.settled()
  await hold.release()
  await Promise.allSettled([beating, settled])
  expect(await t.node.runs.get(run.id)).toMatchObject({ status: 'succeeded', attempts: [{ number: 1 }] })
  expect(await t.query('select from runs where job_id = $1', [run.jobId])).toEqual([])
})

test('a node that stops gives back what it has not ended', async () => {
  const t = await setupClaimed()
  for (let i = 0; i < 20; i++) t.of(i).end()
  await t.node.engine.stop(0)
  expect(await t.query('select state, attempt, failures, count(*)::int as n from runs group by 1, 2, 3')).toEqual([
    { state: RUN_STATE.waiting, attempt: 1, failures: 0, n: MANY - 20 },
  ])
  expect(await t.history()).toEqual([succeeded(20), { number: 1, outcome: OUTCOME.released, n: MANY - 20 }])
})

test('runs that were born leased end once, or come back when their node dies', async () => {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  const { runs, of } = await promoted(node, { delay: '1m' })
  expect(runs.size).toBe(MANY)
  expect(await t.query('select distinct state, attempt from runs')).toEqual([{ state: RUN_STATE.leased, attempt: 1 }])
  for (let i = 0; i < 30; i++) of(i).end()
  await node.engine.handlers.settled()
  other.clock.advance(MINUTE + LEASE_MS)
  expect(await other.reap()).toBe(MANY - 30)
  expect(await t.query('select distinct one_off, attempt, failures from runs')).toEqual([
    { one_off: true, attempt: 1, failures: 1 },
  ])
})

test('of many recurring jobs the next time is skipped while the last run is at work, and comes when it has ended', async () => {
  const t = await setup()
  const node = await t.startNode()
  const job = { every: 'PT1M', startAt: new Date(START + MINUTE), timeout: '1h' }
  const { runs, of, endAll, fire } = await promoted(node, job)
  const first = new Map([...runs].map(([jobId, { run }]) => [jobId, run.id]))
  for (let i = 0; i < 40; i++) of(i).end()
  await node.engine.handlers.settled()
  await fire()
  expect([...runs.values()].filter(({ run }) => first.get(run.jobId) !== run.id)).toHaveLength(40)
  expect(await t.query('select count(*)::int as n from skips')).toEqual([{ n: MANY - 40 }])
  await endAll()
  await fire()
  await endAll()
  expect(await t.query('select count(*)::int as n from skips')).toEqual([{ n: MANY - 40 }])
  expect(await t.query('select count(*)::int as n from attempts where final')).toEqual([{ n: 2 * MANY + 40 }])
})

test.each(['answered', 'sent'] as const)(
  'ends that others wait for, whose statement was %s into a lost connection, are in history once and told once',
  async (when) => {
    const proxy = await startLossyProxy()
    const t = await setupFamilies(proxy.connection)
    const lost = proxy.lose('finish_succeeded', when)
    const ended = t.endAll()
    await lost
    proxy.goOn()
    await ended
    expect(await t.query('select number, outcome from attempts')).toEqual(
      Array(MANY).fill({ number: 1, outcome: OUTCOME.succeeded }),
    )
    expect(await t.query('select number from outbox')).toEqual(Array(MANY).fill({ number: 1 }))
    await tellAll(t.node)
    expect(await t.states()).toEqual(ALL_READY)
  },
)

test('what a dead node had not ended is still waited for when it is performed again', async () => {
  const t = await setupFamilies()
  for (let i = 0; i < 50; i++) t.parent(i).end()
  await t.node.engine.handlers.settled()
  t.other.clock.advance(LEASE_MS)
  expect(await t.other.reap()).toBe(MANY - 50)
  const again = await claimed(t.other, [])
  expect(again.runs.size).toBe(MANY - 50)
  await again.endAll()
  await tellAll(t.other)
  expect(await t.states()).toEqual(ALL_READY)
  // The dead node was only away: what it says now is refused, and no child is told twice.
  await t.endAll()
  expect(await t.query('select from outbox')).toEqual([])
})

test('a run that ends in the transaction of its handler frees its child', async () => {
  const t = await setupFamilies()
  const client = await t.connect()
  await client.query('begin')
  await t.parent(1).run.completeIn(client, {})
  await client.query('commit')
  await t.endAll()
  await tellAll(t.node)
  expect(await t.states()).toEqual(ALL_READY)
})

/** Parents have ended; all of it is work of one queue, which the node serves. */
async function setupChildren(connection?: Connection) {
  const t = await setup()
  const node = await t.startNode(connection)
  const parents = Array.from({ length: MANY }, (_, i) => ({ ref: `p${i}`, queue: 'work', payload: 'parent' }))
  const children = parents.map(({ ref }) => ({ queue: 'work', payload: 'child', after: { jobs: [ref] } }))
  const many = await claimed(node, [...parents, ...children])
  expect(many.runs.size).toBe(MANY)
  await many.endAll()
  many.runs.clear()
  const tell = async () => {
    await node.engine.deliverer.runOnce()
    await node.claim('work')
  }
  return { ...t, node, ...many, tell }
}

test('children that are freed become ready, and the claimer of the node that freed them takes them without a look at the database', async () => {
  const t = await setupChildren()
  await t.tell()
  expect(t.runs.size).toBe(MANY)
  expect(new Set([...t.runs.values()].map(({ run }) => run.payload))).toEqual(new Set(['child']))
})

test.each(['answered', 'sent'] as const)(
  'children whose transaction was committed, and that %s into a lost connection, are performed once',
  async (when) => {
    const proxy = await startLossyProxy()
    const t = await setupChildren(proxy.connection)
    const lost = proxy.lose('commit', when)
    const telling = t.tell().catch(() => {})
    await lost
    proxy.goOn()
    await telling
    // It is not known yet whether that was committed: if it was not, the ends are still there.
    t.node.engine.pulse.sweepNext()
    await t.node.engine.pulse.runOnce()
    for (let i = 0; i < 3; i++) await t.tell()
    expect(t.runs.size).toBe(MANY)
    await t.endAll()
    expect(await t.query('select count(*)::int as n from attempts')).toEqual([{ n: 2 * MANY }])
    expect([await t.query('select from runs'), await t.query('select from outbox')]).toEqual([[], []])
  },
)
