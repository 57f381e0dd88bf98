import { expect, onTestFinished, test } from 'vitest'
import { OUTCOME } from '../../src/job/states.ts'
import { createDatabase } from '../database.ts'
import { startReceiver } from '../http-target.ts'
import { type BelfryNode, startNodes } from './fleet.ts'
import { Ledger } from './ledger.ts'

/** Of each kind and policy. More of them: `BELFRY_CHAOS_RUNS=10000`. */
const RUNS = Number(process.env.BELFRY_CHAOS_RUNS ?? 500)
const LEASE_MS = 2_000
/** From the start of another node until all that is well has ended: the lease, five seconds, and what the work takes. */
const DONE_WITHIN_MS = LEASE_MS + 5_000 + 3 * RUNS
/** What the machine may add while other tests keep it busy. */
const SLACK_MS = 3_000

const SLOTS = 20
/** Calls of a node to one origin at a time. */
const CALLS = 256

const POLICIES = [{}, { retry: { maxAttempts: 1 } }, { delivery: 'at_most_once' }]

/** Nodes that perform calls and handlers, and what a receiver and the handlers counted by run and attempt. */
async function setup() {
  const database = await createDatabase({ fresh: true })
  onTestFinished(() => database.drop())
  const ledger = await Ledger.open()
  let isWell = false
  let hanging = 0
  const receiver = await startReceiver((_, response) => {
    // When enough have been answered the next ones hang, so that the node dies with calls under way.
    if (isWell || receiver.received.length <= RUNS / 2) response.end('fine')
    else hanging++
  })
  const { connection, schema } = database
  const options = { database: connection, schema, ledger, leaseMs: LEASE_MS, allowPrivateTargets: true }
  const start = async (stallsAfter?: number): Promise<BelfryNode> => {
    const stalls = stallsAfter === undefined ? {} : { stallsAfter }
    const [node] = await startNodes(1, { ...options, ...stalls, queues: { work: SLOTS } })
    return node as BelfryNode
  }
  const recover = () => {
    isWell = true
    return start()
  }
  const create = (node: BelfryNode) => {
    const kinds = [{ http: { url: receiver.url } }, { queue: 'work', payload: { ms: 5 } }]
    const jobs = kinds.flatMap((kind) => POLICIES.map((policy) => ({ ...kind, ...policy })))
    return node.createMany(Array.from({ length: jobs.length * RUNS }, (_, i) => jobs[i % jobs.length]))
  }
  /** Job and attempt, once for each time that its target or handler was called. */
  const calls = async () => [
    ...receiver.received.map(({ headers }) => `${headers['belfry-job-id']} ${headers['belfry-attempt']}`),
    ...(await ledger.executions()).map(({ job_id, attempt }) => `${job_id} ${attempt}`),
  ]
  /** Nothing more can begin: all calls of the node hang, and all its handlers. */
  const isFull = async () => hanging === CALLS && (await ledger.count()) === RUNS / 2 + SLOTS
  return { database, start, recover, create, calls, isFull }
}

const jobOf = (fence: string): string => fence.split(' ')[0] as string

test(
  'a node that is killed leaves no run failed or lost that was never called',
  async () => {
    const t = await setup()
    const victim = await t.start(RUNS / 2)
    await t.create(victim)
    // Between the word that an attempt begins and its call nothing can know whether it was made: no attempt stands there now.
    await expect.poll(t.isFull, { interval: 5 }).toBe(true)
    await victim.kill()
    const underWay = await t.database.query('select from runs where begun_at is not null')
    const leased = await t.database.query('select from runs where holder is not null')
    // It had leased more than it had begun: of these runs the test is.
    expect(leased.length).toBeGreaterThan(underWay.length)

    await t.recover()
    const recoveredAt = performance.now()
    const left = async () => (await t.database.query('select from runs')).length
    await expect.poll(left, { interval: 100 }).toBe(0)
    expect(performance.now() - recoveredAt).toBeLessThan(DONE_WITHIN_MS + SLACK_MS)

    const calls = await t.calls()
    expect(calls.length - new Set(calls).size).toBe(0)
    const called = new Set(calls.map(jobOf))
    const ends = await t.database.query<{ job_id: string; outcome: number }>(
      'select job_id, outcome from attempts where final',
    )
    expect(ends).toHaveLength(RUNS * 6)
    expect(ends.filter(({ job_id }) => !called.has(job_id))).toEqual([])
    // What was at work and must not be repeated has ended badly, and nothing else has.
    expect(ends.filter(({ outcome }) => outcome !== OUTCOME.succeeded)).toHaveLength(underWay.length)
  },
  60_000 + 20 * RUNS,
)
