import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { START, setup } from './setup.ts'
import { tokensOf, workerOf } from './worker.ts'

const ONCE = [{ delivery: 'at_most_once' as const }, { retry: { maxAttempts: 1 } }]
const MARKED = 'select from runs where begun_at is not null'

async function startWorker() {
  const t = await setup()
  const node = await t.startNode()
  return { ...t, node, worker: workerOf(node) }
}

test.each(ONCE)(
  'a run that its worker never began is ready again when the lease expires, uncounted: %j',
  async (terms) => {
    const t = await startWorker()
    const { jobId } = await t.node.jobs.create({ queue: 'work', payload: 1, ...terms })
    const [run] = (await t.worker.lease({ begins: true })).runs
    expect(run).toMatchObject({ begin: true })
    t.node.clock.advance(30_001)
    await t.node.reap()
    expect(await t.node.runs.get(runIdOf(jobId, START))).toMatchObject({
      ...{ status: 'ready', failures: 0 },
      attempts: [{ number: 1, status: 'released', failureClass: 'lease_expired', counted: false, startedAt: null }],
    })
    expect(await t.worker.heartbeat([run?.token as string], { begun: true })).toEqual(['lease_lost'])
  },
)

test.each(ONCE)('a run whose worker said that it begins has ended when the lease expires: %j', async (terms) => {
  const t = await startWorker()
  const { jobId } = await t.node.jobs.create({ queue: 'work', payload: 1, ...terms })
  const tokens = tokensOf(await t.worker.lease({ begins: true }))
  expect(await t.worker.heartbeat(tokens, { begun: true })).toEqual(['ok'])
  t.node.clock.advance(30_001)
  await t.node.reap()
  const status = 'delivery' in terms ? 'lost' : 'failed'
  expect(await t.node.runs.get(runIdOf(jobId, START))).toMatchObject({ status, failureClass: 'lease_expired' })
})

test('a worker that does not say when it begins begins with the answer to its lease call', async () => {
  const t = await startWorker()
  await t.node.jobs.createMany([...ONCE, {}].map((terms) => ({ queue: 'work', payload: 1, ...terms })))
  const { runs } = await t.worker.lease({ max: 3 })
  expect(runs.map(({ begin }) => begin)).toEqual([undefined, undefined, undefined])
  expect(await t.query(MARKED)).toHaveLength(2)
})

test('a handler of a run that may not be repeated begins when the row says so, and not before', async () => {
  const t = await startWorker()
  const begun: string[] = []
  await t.node.handle('once', (run) => void begun.push(run.jobId))
  const { jobId } = await t.node.jobs.create({ queue: 'once', payload: 1, delivery: 'at_most_once' })
  const hold = await t.holdAt('update', 'runs', jobId)
  const claiming = t.node.claim('once')
  await t.untilBlocked()
  expect(begun).toEqual([])
  await hold.release()
  await claiming
  expect(begun).toEqual([jobId])
})

test('what goes back before it began is ready in its old turn, and history has nothing of it', async () => {
  const t = await startWorker()
  const jobs = await t.node.jobs.createMany([1, 2].map((payload) => ({ queue: 'work', payload })))
  const ready = 'select job_id, turn from runs where state = 0 order by turn'
  const before = await t.query(ready)
  const { runs } = await t.worker.lease({ max: 2 })
  expect(await t.query(ready)).toEqual([])
  expect(await t.worker.giveBack(runs.map(({ token }) => token))).toEqual(['ok', 'ok'])
  expect(await t.query(ready)).toEqual(before)
  // Said again it is answered as before, and changes nothing.
  expect(await t.worker.giveBack(runs.map(({ token }) => token))).toEqual(['ok', 'ok'])
  const again = await t.worker.lease({ max: 2 })
  expect(again.runs.map(({ attempt, failures }) => [attempt, failures])).toEqual([
    [2, 0],
    [2, 0],
  ])
  expect(await t.worker.complete(tokensOf(again))).toEqual(['ok', 'ok'])
  const numbers = await t.query('select number from attempts where job_id = any($1)', [jobs.map(({ jobId }) => jobId)])
  expect(numbers).toEqual([{ number: 2 }, { number: 2 }])
})

test('an expired lease is a failure of its holder, whatever the timeout', async () => {
  const t = await startWorker()
  const { jobId } = await t.node.jobs.create({ queue: 'work', payload: 1, timeout: '30s' })
  await t.worker.lease({ leaseMs: 30_000 })
  t.node.clock.advance(30_001)
  await t.node.reap()
  expect(await t.node.runs.get(runIdOf(jobId, START))).toMatchObject({
    ...{ status: 'ready', failures: 1 },
    attempts: [{ number: 1, status: 'failed', failureClass: 'lease_expired', counted: true }],
  })
})
