import { expect, test } from 'vitest'
import { payloads, setup as setupLimited } from '../concurrency-kit.ts'
import { type Node, setup } from './setup.ts'
import { workerOf } from './worker.ts'

type Setup = { query(sql: string): Promise<unknown> }

/** A run of which nobody can tell what it counts as: whoever claims it fails, each time. */
async function createFaulty(t: Setup, jobs: Node['jobs'], queue = 'work') {
  const { jobId } = await jobs.create({ queue, payload: 'faulty', rateLimit: { limit: 10, period: '1m', cost: 7 } })
  for (const table of ['jobs', 'specs'])
    await t.query(`update ${table} set definition = replace(definition::text, '"cost":7', '"cost":"x"')::json
       where ${table === 'jobs' ? 'id' : 'job_id'} = '${jobId}'`)
}

const keyed = (count: number, queue = 'work') =>
  Array.from({ length: count }, (_, i) => ({ queue, payload: i, concurrency: { key: `k${i}`, limit: 1 } }))

test.each([1, 2])(
  'a key that cannot be claimed by keeps %i workers elsewhere from nothing but its own runs',
  async (workers) => {
    const t = await setup()
    const node = await t.startNode()
    await createFaulty(t, node.jobs)
    node.clock.advance(1)
    await node.jobs.createMany([...keyed(9), { queue: 'work', payload: 'plain' }])
    await node.jobs.create({ queue: 'work', payload: 'once', delivery: 'at_most_once' })
    const seen: unknown[] = []
    for (let call = 0; call < 6; call++) {
      const answers = await Promise.all(
        Array.from({ length: workers }, (_, i) =>
          workerOf(node, `w${i}`).lease({ max: 10, requestId: `${call}/${i}` }),
        ),
      )
      for (const { runs } of answers) seen.push(...runs.map(({ payload }) => payload))
    }
    expect(seen.map(String).sort()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', 'once', 'plain'])
  },
)

test('of a queue that has a limit too, all but the faulty key is performed by this process', async () => {
  const t = await setupLimited()
  const node = await t.startNode()
  await node.handle('work', 20)
  await node.limit('work', { maxRunning: 15 })
  await createFaulty(t, node.jobs)
  node.clock.advance(1)
  await node.jobs.createMany([...keyed(9), ...payloads('work', 2)])
  await node.pulse()
  for (let i = 0; i < 8; i++) await node.claim('work')
  expect(node.held).toHaveLength(11)
})

test('where there is room for a few only, runs with keys and others get it by turn', async () => {
  const t = await setupLimited()
  const node = await t.startNode()
  await node.handle('work', 20)
  await node.limit('work', { maxRunning: 2 })
  await node.jobs.createMany(keyed(60).map((job) => ({ ...job, fairnessKey: 'many' })))
  node.clock.advance(1)
  await node.jobs.createMany(payloads('work', 10).map((job) => ({ ...job, payload: 'plain', fairnessKey: 'few' })))
  await node.pulse()
  const begun: unknown[] = []
  for (let round = 0; round < 20; round++) {
    await node.claim('work')
    begun.push(...node.held.map(({ run }) => run.payload))
    await node.end(node.held.length)
    await node.pulse()
  }
  expect(begun).toHaveLength(40)
  expect(begun.filter((payload) => payload === 'plain')).toHaveLength(10)
})

test('the only slot of a process is shared by turn between runs with keys and others', async () => {
  const t = await setupLimited()
  const node = await t.startNode()
  await node.handle('work', 1)
  await node.jobs.createMany(keyed(30).map((job) => ({ ...job, fairnessKey: 'many' })))
  node.clock.advance(1)
  await node.jobs.createMany(payloads('work', 5).map((job) => ({ ...job, payload: 'plain', fairnessKey: 'few' })))
  await node.pulse()
  const begun: unknown[] = []
  for (let round = 0; round < 24; round++) {
    await node.claim('work')
    begun.push(...node.held.map(({ run }) => run.payload))
    await node.end(node.held.length)
  }
  expect(begun.filter((payload) => payload === 'plain')).toHaveLength(5)
  expect(begun.length).toBeGreaterThan(15)
})
