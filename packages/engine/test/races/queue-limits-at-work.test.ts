import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry } from '../../src/belfry.ts'
import { createDatabase, today } from '../database.ts'

const RUNS = 800
const quiet = { debug() {}, info() {}, warn() {}, error() {} }

/** Real nodes with all their loops, and one who looks at the tables without taking part. */
async function setup(nodes: number) {
  const { schema, query, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  const options = { database: inject('postgres'), schema, logger: quiet, drainMs: 0 }
  const started = await Promise.all(Array.from({ length: nodes }, () => Belfry.start(options)))
  onTestFinished(async () => {
    await Promise.all(started.map((node) => node.stop()))
  })
  const [first] = started as [Belfry]
  const { queues } = first.tenant({ tenantId: 1, tenant: 'default', actor: 'test' })
  let [most, isOver] = [0, false]
  const observing = async (): Promise<void> => {
    while (!isOver) {
      const [row] = await query<{ n: number }>('select count(*)::int as n from runs where state = 1')
      most = Math.max(most, row?.n ?? 0)
    }
  }
  /** The most that was leased at once while the work was done. */
  const mostDuring = async (work: () => Promise<void>): Promise<number> => {
    ;[most, isOver] = [0, false]
    const observer = observing()
    await work().finally(() => {
      isOver = true
    })
    await observer
    return most
  }
  const done = async (): Promise<number> =>
    (await query<{ n: number }>('select count(*)::int as n from attempts where final'))[0]?.n ?? 0
  const until = (count: number) => expect.poll(done, { interval: 20 }).toBeGreaterThanOrEqual(count)
  return { nodes: started, first, queues, mostDuring, until }
}

test('three nodes at work never hold more leases of a queue than its limit, also while it is lowered and raised', async () => {
  const t = await setup(3)
  await t.queues.put('work', { maxRunning: 20 })
  for (const node of t.nodes)
    node.handle('work', () => new Promise((resolve) => setImmediate(resolve)), { concurrency: 15 })
  await t.first.jobs.createMany(Array(RUNS).fill({ queue: 'work', payload: 1 }))
  expect(await t.mostDuring(() => t.until(RUNS / 4))).toBeLessThanOrEqual(20)
  await t.queues.put('work', { maxRunning: 3 })
  // What was leased by the old limit ends in a moment.
  await t.until(RUNS / 4 + 100)
  expect(await t.mostDuring(() => t.until(RUNS / 4 + 200))).toBeLessThanOrEqual(3)
  await t.queues.put('work', { maxRunning: 40 })
  expect(await t.mostDuring(() => t.until(RUNS))).toBeLessThanOrEqual(40)
})
