import { expect, test } from 'vitest'
import { claimRuns } from '../../src/attempts/claim-runs.sql.ts'
import { runIdOf } from '../../src/job/ids.ts'
import { OUTCOME } from '../../src/job/states.ts'
import { MINUTE, type Node, START, setup } from './setup.ts'
import { workerOf } from './worker.ts'

const JOB = { queue: 'work', payload: 1 }
const RETRIED = { ...JOB, retry: { maxAttempts: 5, backoff: { type: 'fixed', initial: '1s', jitter: 0 } } } as const

/** A handler that ends when it is told to, and does not listen to cancels. */
async function gated(node: Node, concurrency = 10) {
  const begun: string[] = []
  let letGo: (error?: Error) => void = () => {}
  const gate = new Promise<void>((resolve, reject) => {
    letGo = (error) => (error ? reject(error) : resolve())
  })
  gate.catch(() => {})
  const queueId = await node.engine.registry.queueId(1, 'work')
  node.engine.handle(
    queueId,
    (run) => {
      begun.push(run.jobId)
      return gate
    },
    concurrency,
  )
  const end = async (error?: Error) => {
    letGo(error)
    await node.engine.handlers.settled()
  }
  return { begun, end }
}

const outcomesOf = (t: Awaited<ReturnType<typeof setup>>) =>
  t.query('select number, outcome, final from attempts order by finished_at, number')

test('a run that was asked to stop is not tried again when its attempt fails before it heard of that', async () => {
  const t = await setup()
  // The node that performs it hears of nothing.
  const [node, other] = [await t.startNode(), await t.startNode()]
  const handler = await gated(node)
  const { jobId } = await node.jobs.create(RETRIED)
  await node.claim('work')
  expect(await other.runs.cancel(runIdOf(jobId, START))).toEqual({ status: 'canceling' })
  await handler.end(new Error('down'))
  expect(await t.query('select from runs')).toEqual([])
  expect(await node.runs.get(runIdOf(jobId, START))).toMatchObject({
    status: 'canceled',
    attempts: [{ number: 1, status: 'canceled', failureClass: 'canceled', error: 'Error: down' }],
  })
})

test.each(['failed', 'snoozed', 'released'] as const)(
  'a run that was asked to stop ends as canceled when its worker says %s, and the worker hears the same each time',
  async (status) => {
    const t = await setup()
    const node = await t.startNode()
    const worker = workerOf(node)
    const { jobId } = await node.jobs.create(RETRIED)
    const [run] = (await worker.lease()).runs
    const tokens = [run?.token ?? '']
    expect(await node.runs.cancel(runIdOf(jobId, START))).toEqual({ status: 'canceling' })
    const say = () =>
      status === 'released' ? worker.release(tokens) : worker.complete(tokens, { status, retryInMs: 1_000 } as never)
    for (let i = 0; i < 2; i++) expect(await say()).toEqual(['lease_lost'])
    expect(await outcomesOf(t)).toEqual([{ number: 1, outcome: OUTCOME.canceled, final: true }])
  },
)

test('a run that is canceled while its lease waits for a slot does not begin', async () => {
  const t = await setup()
  const node = await t.startNode()
  const handler = await gated(node, 1)
  const queueId = await node.engine.registry.queueId(1, 'work')
  await node.jobs.create(JOB)
  await node.claim('work')
  const { jobId } = await node.jobs.create(JOB)
  const { claimed } = await claimRuns(node.db, {
    ...{ queueId, now: START, levels: [{ priority: 5, watermark: 0 }], limit: 1, freePlaces: 0 },
    places: [{ holder: '7', leaseUntil: START + MINUTE }],
  })
  await node.engine.handlers.deliver(claimed.map(({ lease }) => lease))
  expect(await node.runs.cancel(runIdOf(jobId, START))).toEqual({ status: 'canceling' })
  await handler.end()
  expect(handler.begun).toHaveLength(1)
  expect(await node.runs.get(runIdOf(jobId, START))).toMatchObject({ status: 'canceled' })
})
