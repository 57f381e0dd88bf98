import { expect, test } from 'vitest'
import { type Finish, lookAtAttempts } from '../../src/attempts/finish.sql.ts'
import { shardOfJob } from '../../src/job/ids.ts'
import { OUTCOME } from '../../src/job/states.ts'
import { renewLeases } from '../../src/leases/heartbeat.sql.ts'
import { byLockOrder, type Lease } from '../../src/leases/lease.ts'
import { type Node, START, setup } from './setup.ts'

const runIdOf = (jobId: string): string => `${jobId}.${START.toString(36)}`

/** Leases as a node has them, without a handler: the test finishes by hand. */
async function leased(node: Node, count: number): Promise<Lease[]> {
  const leases: Lease[] = []
  await node.handle('work', (run) => {
    leases.push(run.lease)
    return new Promise(() => {})
  })
  await node.jobs.createMany(Array(count).fill({ queue: 'work', payload: 1, timeout: '1h' }))
  await node.claim('work')
  expect(leases).toHaveLength(count)
  return leases.sort(byLockOrder)
}

function signal() {
  let give = () => {}
  const given = new Promise<void>((resolve) => {
    give = resolve
  })
  return { given, give: () => give() }
}

const succeeded = (fence: Lease): Finish => ({ kind: 'succeeded', fence, startedAt: START, finishedAt: START })
const common = { startedAt: START, finishedAt: START, failureClass: null, statusCode: null, error: null }
const ended = (fence: Lease): Finish => ({ ...common, kind: 'ended', fence, outcome: OUTCOME.failed, result: null })
const again = (fence: Lease): Finish => ({
  ...common,
  ...{ kind: 'goes_on', fence, outcome: OUTCOME.released, counted: false, nextDueAt: START, turn: null },
})

test('a claim that meets a run which is canceled meanwhile leaves it alone', async () => {
  const t = await setup()
  const node = await t.startNode()
  const seen: string[] = []
  await node.handle('work', (run) => void seen.push(run.jobId))
  const [first, second] = await node.jobs.createMany(Array(2).fill({ queue: 'work', payload: 1 }))
  const [one, other] = [first?.jobId ?? '', second?.jobId ?? '']
  const hold = await t.holdAt('delete', 'runs', other)
  const canceling = node.runs.cancel(runIdOf(other))
  await t.untilBlocked()
  await node.claim('work')
  await node.engine.handlers.settled()
  await hold.release()
  expect(await canceling).toEqual({ status: 'canceled' })
  await node.claim('work')
  expect(seen).toEqual([one])
  expect(await node.runs.get(runIdOf(other))).toMatchObject({ status: 'canceled', attempts: [{ number: 0 }] })
})

test('a cancel that waits for a claim asks the run to stop, and does not remove it', async () => {
  const t = await setup()
  const node = await t.startNode()
  let reason: unknown
  await node.handle('work', (run) => {
    return new Promise((_, reject) => {
      run.signal.addEventListener('abort', () => {
        reason = run.signal.reason
        reject(new Error('stopped'))
      })
    })
  })
  const { jobId } = await node.jobs.create({ queue: 'work', payload: 1 })
  const hold = await t.holdAt('update', 'runs', jobId)
  const claiming = node.claim('work')
  await t.untilBlocked()
  const canceling = node.runs.cancel(runIdOf(jobId))
  await t.untilBlocked(2)
  await hold.release()
  await claiming
  expect(await canceling).toEqual({ status: 'canceling' })
  node.clock.advance(10_000)
  await node.engine.keeper.runOnce()
  await node.reap()
  await node.engine.handlers.settled()
  expect(reason).toBe('canceled')
  expect(await node.runs.get(runIdOf(jobId))).toMatchObject({ status: 'canceled', attempts: [{ number: 1 }] })
})

test('runs that somebody holds for long keep no others from ending', async () => {
  const t = await setup()
  const node = await t.startNode()
  const [free, ...held] = (await leased(node, 4)) as [Lease, ...Lease[]]
  const client = await t.connect()
  await client.query('begin')
  const jobIds = held.map(({ jobId }) => jobId)
  await client.query(`select from "${t.schema}".runs where job_id = any ($1) for update`, [jobIds])
  const { finisher } = node.engine
  const outcomes: Promise<string>[] = []
  // Each is a batch of its own, and there are more of them than lanes.
  for (const lease of held) {
    outcomes.push(finisher.finished(succeeded(lease)))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(await finisher.finished(succeeded(free))).toBe('ok')
  await client.query('commit')
  expect(await Promise.all(outcomes)).toEqual(['ok', 'ok', 'ok'])
  await finisher.drained()
  expect(await t.query('select from attempts')).toHaveLength(4)
})

test('a reaper that meets a finish under way closes nothing, and the finish is kept', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const [lease] = await leased(a, 1)
  b.clock.advance(30_000)
  const hold = await t.holdAt('delete', 'runs', lease?.jobId ?? '')
  const finishing = a.engine.finisher.finished(succeeded(lease as Lease))
  await t.untilBlocked()
  expect(await b.reap()).toBe(0)
  await hold.release()
  expect(await finishing).toBe('ok')
  expect(await t.query('select outcome, number from attempts')).toEqual([{ outcome: OUTCOME.succeeded, number: 1 }])
  expect(await t.query('select from runs')).toEqual([])
})

test('a finish that meets a reaper under way is told that its lease is lost, and writes nothing', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const [lease] = await leased(a, 1)
  b.clock.advance(30_000)
  const hold = await t.holdAt('update', 'runs', lease?.jobId ?? '')
  const reaping = b.reap()
  await t.untilBlocked()
  const finishing = a.engine.finisher.finished(succeeded(lease as Lease))
  await hold.release()
  expect(await reaping).toBe(1)
  expect(await finishing).toBe('lease_lost')
  expect(await t.query('select outcome from attempts')).toEqual([{ outcome: OUTCOME.failed }])
  expect(await t.query('select state, attempt, failures from runs')).toEqual([{ state: 0, attempt: 1, failures: 1 }])
})

test('a lease that was renewed after the reaper saw it expire stays live', async () => {
  const t = await setup()
  const node = await t.startNode()
  const [lease] = (await leased(node, 1)) as [Lease]
  const seen = lease.leaseUntil
  await renewLeases(node.db, [lease], 60_000)
  const late = { ...ended(lease), leaseUntil: seen } as Finish
  expect(await node.engine.finisher.finished(late)).toBe('lease_lost')
  expect(await node.engine.finisher.finished(succeeded(lease))).toBe('ok')
})

test('two finishes of one attempt that say the same are both told ok, and history has it once', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const [lease] = (await leased(a, 1)) as [Lease]
  const hold = await t.holdAt('delete', 'runs', lease.jobId)
  const one = a.engine.finisher.finished(succeeded(lease))
  await t.untilBlocked()
  const other = b.engine.finisher.finished(succeeded(lease))
  await hold.release()
  expect(await Promise.all([one, other])).toEqual(['ok', 'ok'])
  expect(await t.query('select from attempts')).toHaveLength(1)
})

test('of two finishes of one attempt that say different things one is told that its lease is lost', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const [lease] = (await leased(a, 1)) as [Lease]
  const hold = await t.holdAt('delete', 'runs', lease.jobId)
  const one = a.engine.finisher.finished(succeeded(lease))
  await t.untilBlocked()
  const other = b.engine.finisher.finished(ended(lease))
  await hold.release()
  expect(await Promise.all([one, other])).toEqual(['ok', 'lease_lost'])
  expect(await t.query('select outcome from attempts')).toEqual([{ outcome: OUTCOME.succeeded }])
  expect(await t.query('select from dead_letters')).toEqual([])
})

test('a late finish after a release cannot end the new lease of the same worker', async () => {
  const t = await setup()
  const node = await t.startNode()
  const [first] = (await leased(node, 1)) as [Lease]
  const old = { ...first }
  expect(await node.engine.finisher.finished(again(old))).toBe('ok')
  node.engine.waking.shards.look(shardOfJob(old.jobId), START)
  await node.engine.waking.waker.runOnce()
  await node.claim('work')
  expect(await t.query('select attempt, state from runs')).toEqual([{ attempt: 2, state: 1 }])
  expect(await node.engine.finisher.finished(succeeded(old))).toBe('lease_lost')
  expect(await t.query('select attempt, state from runs')).toEqual([{ attempt: 2, state: 1 }])
  expect(await t.query('select number, outcome from attempts')).toEqual([{ number: 1, outcome: OUTCOME.released }])
})

test.each([
  ['succeeded', succeeded, 'delete'],
  ['failed for good', ended, 'delete'],
  ['to be tried again', again, 'update'],
] as const)(
  'a heartbeat that commits while a finish runs does not lose the finish (%s)',
  async (_, finishOf, event) => {
    const t = await setup()
    const node = await t.startNode()
    const leases = await leased(node, 2)
    const [first, second] = leases as [Lease, Lease]
    const hold = await t.holdAt(event, 'runs', first.jobId)
    // The first row stops the statement; the second changes under the statement's snapshot before it comes to it.
    const finishing = leases.map((lease) => node.engine.finisher.finished(finishOf(lease)))
    await t.untilBlocked()
    expect(await renewLeases(node.db, [second], 60_000)).toHaveLength(1)
    await hold.release()
    expect(await Promise.all(finishing)).toEqual(['ok', 'ok'])
    expect(await t.query('select from attempts')).toHaveLength(2)
    expect(await t.query('select from runs where state = 1')).toEqual([])
  },
)

test('a heartbeat waits for nobody: a run that is being completed elsewhere is passed over, the others are renewed', async () => {
  const t = await setup()
  const node = await t.startNode()
  const client = await t.connect()
  const commit = signal()
  const completed = signal()
  const ids: string[] = []
  await node.handle('work', async (run) => {
    ids.push(run.jobId)
    if (run.payload !== 'own') return new Promise(() => {})
    await client.query('begin')
    await run.completeIn(client)
    completed.give()
    await commit.given
    await client.query('commit')
  })
  const [own] = await node.jobs.createMany([
    { queue: 'work', payload: 'own' },
    ...Array(4).fill({ queue: 'work', payload: 'other' }),
  ])
  await node.claim('work')
  await completed.given
  node.clock.advance(15_000)
  await node.engine.keeper.runOnce()
  const until = await t.query<{ job_id: string; lease_until: Date }>('select job_id, lease_until from runs')
  for (const { job_id, lease_until } of until)
    expect(lease_until.getTime() - START).toBe(job_id === own?.jobId ? 30_000 : 45_000)
  // Even a batch that names it neither waits nor takes it for lost.
  const pool = node.engine.handlers.pools[0]
  const all = [...(pool?.active ?? [])].map((run) => run.lease).sort(byLockOrder)
  expect(all).toHaveLength(5)
  expect(await renewLeases(node.db, all, 50_000)).toHaveLength(4)
  commit.give()
  await expect.poll(() => pool?.active.size, { interval: 5 }).toBe(4)
  await node.engine.handlers.settled()
  expect(await t.query('select job_id, outcome from attempts')).toEqual([
    { job_id: own?.jobId, outcome: OUTCOME.succeeded },
  ])
})

test('a completion that waits for a heartbeat finds its lease live', async () => {
  const t = await setup()
  const node = await t.startNode()
  const client = await t.connect()
  const go = signal()
  await node.handle('work', async (run) => {
    await go.given
    await client.query('begin')
    await run.completeIn(client)
    await client.query('commit')
  })
  const { jobId } = await node.jobs.create({ queue: 'work', payload: 1 })
  await node.claim('work')
  const hold = await t.holdAt('update', 'runs', jobId)
  node.clock.advance(15_000)
  const keeping = node.engine.keeper.runOnce()
  await t.untilBlocked()
  go.give()
  await t.untilBlocked(2)
  await hold.release()
  await keeping
  await expect.poll(() => node.engine.handlers.pools[0]?.active.size, { interval: 5 }).toBe(0)
  await node.engine.handlers.settled()
  expect(await t.query('select outcome from attempts')).toEqual([{ outcome: OUTCOME.succeeded }])
  expect(await t.query('select from runs')).toEqual([])
})

test('of two who say different things of one attempt, only the one that history agrees with is told so', async () => {
  const t = await setup()
  const node = await t.startNode()
  const [lease] = (await leased(node, 1)) as [Lease]
  expect(await node.engine.finisher.finished(again(lease))).toBe('ok')
  const [worker, other] = [succeeded(lease), again(lease)]
  expect(await lookAtAttempts(node.db, [worker, other])).toEqual(new Set([other]))
  expect(await node.engine.finisher.finished(worker)).toBe('lease_lost')
})
