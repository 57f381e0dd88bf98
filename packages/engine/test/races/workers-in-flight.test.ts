import { expect, test } from 'vitest'
import { MINUTE, START, setup } from './setup.ts'
import { tokensOf, workerOf } from './worker.ts'

const TELL_MS = 5_000

/** Two nodes, and a worker that calls them. */
async function setupWorker() {
  const t = await setup()
  const nodes = [await t.startNode(), await t.startNode()] as const
  const [node] = nodes
  await node.jobs.createMany(Array(2).fill({ queue: 'work', payload: 1, timeout: '1h' }))
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += TELL_MS) {
      for (const { clock } of nodes) clock.advance(TELL_MS)
      await node.reap()
      for (const { engine } of nodes) await engine.remote.runOnce()
    }
  }
  const registry = () => t.query('select in_flight, seen_at from workers')
  return { ...t, nodes, node, pass, registry }
}

test.each([30_000, 3 * MINUTE])(
  'a worker that is gone holds nothing any more when its leases of %i ms have been reaped',
  async (leaseMs) => {
    const t = await setupWorker()
    const { runs } = await workerOf(t.node).lease({ max: 2, leaseMs })
    expect(runs).toHaveLength(2)
    await t.pass(TELL_MS)
    expect(await t.registry()).toEqual([{ in_flight: 2, seen_at: new Date(START) }])
    await t.pass(leaseMs)
    expect(await t.query('select from runs where state = 1')).toEqual([])
    await t.pass(TELL_MS)
    expect(await t.registry()).toEqual([{ in_flight: 0, seen_at: new Date(START) }])
  },
)

test('the node that a worker only sent heartbeats to does not go on saying that it holds something either', async () => {
  const t = await setupWorker()
  const [node, other] = t.nodes
  const tokens = tokensOf(await workerOf(node).lease({ max: 2 }))
  await t.pass(2 * TELL_MS)
  await workerOf(other).heartbeat(tokens)
  await t.pass(TELL_MS)
  expect(await t.registry()).toMatchObject([{ in_flight: 2 }])
  await t.pass(MINUTE)
  expect(await t.registry()).toMatchObject([{ in_flight: 0, seen_at: new Date(START + 2 * TELL_MS) }])
})
