import { expect, test } from 'vitest'
import { Batches } from '../../src/batches.ts'
import { OUTCOME, RUN_STATE } from '../../src/job/states.ts'
import { startLossyProxy } from './lossy-proxy.ts'
import { claimed, LEASE_MS, MANY } from './packed.ts'
import { type Node, setup } from './setup.ts'

/** Each parent has a child in a queue that nobody serves. */
const families = (more: object = {}) =>
  Array.from({ length: MANY }, (_, i) => [
    { ref: `p${i}`, queue: 'work', payload: i, ...more },
    { queue: 'later', payload: i, after: { jobs: [`p${i}`] } },
  ]).flat()

async function tellAll(node: Node): Promise<void> {
  node.engine.dependencies.deliverer.look()
  while ((await node.engine.dependencies.deliverer.runOnce()).waitMs === 0);
}

async function setupFamilies(
  more: object = {},
  connection?: Parameters<Awaited<ReturnType<typeof setup>>['startNode']>[0],
) {
  const t = await setup()
  const [node, other] = [await t.startNode(connection), await t.startNode()]
  const packed = await claimed(node, families(more))
  expect([packed.runs.size, (await t.query('select from receipts')).length]).toEqual([MANY, 1])
  const states = () => t.query('select state, count(*)::int as n from runs group by 1 order by 1')
  /** Of the i-th parent. */
  const parent = (i: number) => packed.of(2 * i)
  return { ...t, node, other, ...packed, parent, states }
}

const ALL_READY = [{ state: RUN_STATE.ready, n: MANY }]

test('runs that others wait for stand in a receipt, and whoever waits is told with their end', async () => {
  const t = await setupFamilies()
  expect(await t.states()).toEqual([{ state: RUN_STATE.dependent, n: MANY }])
  t.parent(0).end()
  await t.node.engine.handlers.settled()
  expect(await t.query('select job_id, number, outcome, one_off from outbox')).toEqual([
    { job_id: t.parent(0).run.jobId, number: 1, outcome: OUTCOME.succeeded, one_off: true },
  ])
  await t.endAll()
  await tellAll(t.node)
  expect(await t.states()).toEqual(ALL_READY)
  expect([await t.query('select from outbox'), await t.query('select from edges')]).toEqual([[], []])
})

test.each(['answered', 'sent'] as const)(
  'ends that others wait for, whose statement was %s into a lost connection, are in history once and told once',
  async (when) => {
    const proxy = await startLossyProxy()
    const t = await setupFamilies({}, proxy.connection)
    const lost = proxy.lose('finish_packed_succeeded_and_tell', when)
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

test('ends that others wait for are told though the ends behind them in the batch were lost', async () => {
  const proxy = await startLossyProxy()
  const t = await setup()
  const node = await t.startNode(proxy.connection)
  const plain = Array(MANY).fill({ queue: 'work', payload: 1 })
  const { runs, endAll } = await claimed(node, [...plain, ...families()])
  expect(runs.size).toBe(2 * MANY)
  const lost = proxy.lose('finish_packed_succeeded\0', 'answered')
  const ended = endAll()
  await lost
  expect(await t.query('select from outbox')).toHaveLength(MANY)
  proxy.goOn()
  await ended
  expect(await t.query('select number, outcome from attempts')).toEqual(
    Array(2 * MANY).fill({ number: 1, outcome: OUTCOME.succeeded }),
  )
  await tellAll(node)
  expect(await t.query('select state from runs')).toEqual(Array(MANY).fill({ state: RUN_STATE.ready }))
})

test('an HTTP call that others wait for leaves its answer, and tells them', async () => {
  const t = await setupFamilies()
  const { lease } = t.parent(0).run
  const answer = { statusCode: 204, response: '{"body":""}' }
  const at = t.node.clock.now()
  const end = { kind: 'answered', fence: lease, startedAt: at, finishedAt: at, ...answer } as const
  expect(await t.node.engine.finisher.finished(end)).toBe('ok')
  expect(await t.query('select job_id, status_code, response from attempts')).toEqual([
    { job_id: lease.jobId, status_code: 204, response: { body: '' } },
  ])
  expect(await t.query('select job_id from outbox')).toEqual([{ job_id: lease.jobId }])
})

test('runs with a key that others wait for stand in a receipt, too', async () => {
  const t = await setupFamilies({ concurrency: { key: 'k', limit: 1_000 } })
  await t.endAll()
  await tellAll(t.node)
  expect(await t.states()).toEqual(ALL_READY)
})

test('jobs of a batch stand in a receipt, and are counted as they end', async () => {
  const t = await setup()
  const node = await t.startNode()
  const batches = new Batches(node.engine)
  const { batchId } = await batches.create(Array(MANY).fill({ queue: 'work', payload: 1 }))
  const { endAll } = await claimed(node, [])
  expect(await t.query('select from receipts')).toHaveLength(1)
  await endAll()
  await tellAll(node)
  expect(await batches.get(batchId)).toMatchObject({ succeeded: MANY })
})

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
  // The dead node was only away: what it says now is refused, and nobody is told twice.
  await t.endAll()
  expect(await t.query('select from outbox')).toEqual([])
})

test('one that fails leaves its receipt and goes on as a row that others wait for; at its last attempt they are told', async () => {
  const t = await setupFamilies({ retry: { maxAttempts: 2 } })
  const { run, end } = t.parent(3)
  end(() => {
    throw new Error('no')
  })
  await t.node.engine.handlers.settled()
  expect(await t.query('select state, has_dependents from runs where job_id = $1', [run.jobId])).toEqual([
    { state: RUN_STATE.waiting, has_dependents: true },
  ])
  t.node.clock.advance(3_600_000)
  await t.node.engine.waker.runOnce()
  await t.node.claim('work')
  t.parent(3).end(() => {
    throw new Error('no')
  })
  await t.endAll()
  await tellAll(t.node)
  expect(await t.states()).toEqual([{ state: RUN_STATE.ready, n: MANY - 1 }])
  expect(await t.query('select outcome from attempts where number = 0')).toEqual([{ outcome: OUTCOME.canceled }])
})

test('one that ends in the transaction of its handler tells others, too', async () => {
  const t = await setupFamilies()
  const client = await t.connect()
  await client.query('begin')
  await t.parent(1).run.completeIn(client, {})
  await client.query('commit')
  await t.endAll()
  await tellAll(t.node)
  expect(await t.states()).toEqual(ALL_READY)
})

test('whoever begins to wait for a run in a receipt is told like those who waited before', async () => {
  const t = await setupFamilies()
  const { run } = t.parent(7)
  const { jobId } = await t.other.jobs.create({ queue: 'later', payload: 'more', after: { jobs: [run.jobId] } })
  expect(await t.query('select from receipts')).toEqual([])
  await t.endAll()
  await tellAll(t.node)
  expect(await t.states()).toEqual([{ state: RUN_STATE.ready, n: MANY + 1 }])
  expect(await t.other.jobs.get(jobId)).toMatchObject({ status: 'active' })
})
