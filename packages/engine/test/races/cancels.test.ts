import { expect, test } from 'vitest'
import { claimRuns } from '../../src/attempts/claim-runs.sql.ts'
import { runIdOf } from '../../src/job/ids.ts'
import { OUTCOME } from '../../src/job/states.ts'
import { seededRandom } from '../../src/runtime/random.ts'
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

test('a cancel of a job whose run is being performed answers canceling, since the run may still succeed', async () => {
  const t = await setup()
  const node = await t.startNode()
  const handler = await gated(node)
  const { jobId } = await node.jobs.create(JOB)
  await node.claim('work')
  expect(await node.jobs.cancel(jobId)).toEqual({ status: 'canceling' })
  expect(await node.jobs.cancel(jobId)).toEqual({ status: 'canceling' })
  await handler.end()
  expect(await node.jobs.get(jobId)).toMatchObject({ status: 'succeeded' })
  await expect(node.jobs.cancel(jobId)).rejects.toMatchObject({ code: 'already_finished' })
})

test.each(['cancel', 'finish'] as const)(
  'a recurring job that is canceled (running: %s) is canceling until its last run has ended',
  async (running) => {
    const t = await setup()
    const node = await t.startNode()
    const handler = await gated(node)
    const { jobId } = await node.jobs.create({ ...JOB, every: '10m' })
    await node.readTimers()
    await node.promote()
    await node.claim('work')
    expect(handler.begun).toEqual([jobId])
    for (let i = 0; i < 2; i++) expect(await node.jobs.cancel(jobId, { running })).toEqual({ status: 'canceling' })
    expect(await node.jobs.get(jobId)).toMatchObject({ status: 'canceled' })
    await handler.end()
    expect(await node.jobs.cancel(jobId)).toEqual({ status: 'canceled' })
    expect(await t.query(`select from job_changes where action = 'cancel'`)).toHaveLength(1)
  },
)

test('a cancel that waits while its job is promoted into a lease answers canceling', async () => {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  const handler = await gated(node)
  const { jobId } = await node.jobs.create({ ...JOB, delay: '1m' })
  node.clock.advance(MINUTE)
  await node.readTimers()
  const hold = await t.holdAt('insert', 'runs', jobId)
  const promoting = node.promote()
  await t.untilBlocked()
  const canceling = other.jobs.cancel(jobId)
  await t.untilBlocked(2)
  await hold.release()
  await promoting
  expect(await canceling).toEqual({ status: 'canceling' })
  await handler.end()
  expect(await outcomesOf(t)).toEqual([{ number: 1, outcome: OUTCOME.succeeded, final: true }])
})

test('a canceled job whose dead run was opened again is canceled by ending that run', async () => {
  const t = await setup()
  const node = await t.startNode()
  const handler = await gated(node)
  const { jobId } = await node.jobs.create({ ...JOB, every: '10m', retry: { maxAttempts: 1 } })
  await node.readTimers()
  await node.promote()
  await node.claim('work')
  await handler.end(new Error('down'))
  await node.jobs.cancel(jobId)
  await node.runs.retry(runIdOf(jobId, START))
  expect(await node.jobs.cancel(jobId)).toEqual({ status: 'canceled' })
  await node.claim('work')
  expect(handler.begun).toHaveLength(1)
})

test('a job that succeeded after an extra run of it was canceled is not told to be canceled', async () => {
  const t = await setup()
  const node = await t.startNode()
  const { jobId } = await node.jobs.create({ ...JOB, delay: '1m' })
  const { runId } = await node.jobs.trigger(jobId)
  expect(await node.runs.cancel(runId)).toEqual({ status: 'canceled' })
  const handler = await gated(node)
  node.clock.advance(MINUTE)
  await node.readTimers()
  await node.promote()
  await node.claim('work')
  await handler.end()
  await expect(node.jobs.cancel(jobId)).rejects.toMatchObject({ code: 'already_finished' })
})

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
    places: [{ holder: '7', leaseMs: MINUTE }],
  })
  await node.engine.handlers.deliver(claimed.map(({ lease }) => lease))
  expect(await node.runs.cancel(runIdOf(jobId, START))).toEqual({ status: 'canceling' })
  await handler.end()
  expect(handler.begun).toHaveLength(1)
  expect(await node.runs.get(runIdOf(jobId, START))).toMatchObject({ status: 'canceled' })
})

const CANCELS = 1_000
const AT_ONCE = 8
const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** In which ways a run may end of which a cancel was answered so. */
const TRUE_ENDS: Record<string, readonly number[]> = {
  canceled: [OUTCOME.canceled],
  canceling: [OUTCOME.canceled, OUTCOME.succeeded],
  already_finished: [OUTCOME.succeeded],
}

test.each([
  ['runs', (node: Node, jobId: string) => node.runs.cancel(runIdOf(jobId, START))],
  ['jobs', (node: Node, jobId: string) => node.jobs.cancel(jobId)],
])('of a thousand cancels of %s at any moment each answer agrees with how the run ended', async (_, cancel) => {
  const t = await setup()
  const [worker, operator] = [await t.startNode(), await t.startNode()]
  const random = seededRandom(7)
  const answers = new Map<string, string>()
  // Handlers last for a few cancels, and do not listen. Some fail, and would be tried again.
  await worker.handle('work', async ({ attempt }) => {
    const until = answers.size + random.float() * 20
    while (answers.size < until && answers.size < CANCELS) await turnOfTheLoop()
    if (attempt === 1 && random.float() < 0.2) throw new Error('not now')
  })
  const created = await worker.jobs.createMany(Array(CANCELS).fill(RETRIED))
  const toCancel = created
    .map(({ jobId }) => ({ jobId, place: random.float() }))
    .sort((a, b) => a.place - b.place)
    .values()
  const cancelAll = async () => {
    for (const { jobId } of toCancel) {
      const answer = cancel(operator, jobId).then(({ status }) => status)
      answers.set(jobId, await answer.catch(({ code }) => code))
    }
  }
  const canceling = Promise.all(Array.from({ length: AT_ONCE }, cancelAll))
  while (answers.size < CANCELS) {
    await worker.claim('work')
    await turnOfTheLoop()
  }
  await canceling
  await worker.engine.handlers.settled()
  const rows = await t.query<{ job_id: string; outcome: number }>('select job_id, outcome from attempts where final')
  const ends = new Map(rows.map(({ job_id, outcome }) => [job_id, outcome]))
  const untrue = [...answers].filter(([jobId, answer]) => !TRUE_ENDS[answer]?.includes(ends.get(jobId) ?? -1))
  expect(untrue.map(([jobId, answer]) => [answer, ends.get(jobId)])).toEqual([])
  expect(new Set(answers.values())).toEqual(new Set(Object.keys(TRUE_ENDS)))
})
