import { expect, onTestFinished, test } from 'vitest'
import { Ledger } from './chaos-ledger.ts'
import { HandlingProcess } from './handling-process.ts'
import { startTestServer } from './server.ts'

/** Of each policy. More of them: `BELFRY_CHAOS_RUNS=10000`. */
const RUNS = Number(process.env.BELFRY_CHAOS_RUNS ?? 500)
const LEASE_MS = 2_000
/** From the start of another worker until all that is well has ended: the lease, five seconds, and what the work takes. */
const DONE_WITHIN_MS = LEASE_MS + 5_000 + 3 * RUNS
/** What the machine may add while other tests keep it busy. */
const SLACK_MS = 3_000

const SLOTS = 20

const POLICIES = [{}, { retry: { maxAttempts: 1 } }, { delivery: 'at_most_once' as const }]

test(
  'a worker that is killed leaves no run failed or lost whose handler was never called',
  async () => {
    const server = await startTestServer()
    onTestFinished(() => server.stop())
    const ledger = await Ledger.open()
    const options = {
      url: server.url,
      key: server.adminKey,
      queue: 'work',
      ledger,
      leaseMs: LEASE_MS,
      concurrency: SLOTS,
    }
    const jobs = Array.from({ length: POLICIES.length * RUNS }, (_, i) => ({
      ...{ queue: 'work', payload: { ms: 2 } },
      ...POLICIES[i % POLICIES.length],
    }))
    await server.client().jobs.createMany(jobs)
    const jobsOf = async () => new Set((await ledger.executions()).map(({ run_id }) => run_id.split('.')[0]))

    const victim = new HandlingProcess({ ...options, stallsAfter: RUNS })
    await victim.started
    // All its handlers hang: between the word that an attempt begins and its handler no attempt stands now.
    await expect.poll(async () => (await ledger.executions()).length, { interval: 5 }).toBe(RUNS + SLOTS)
    victim.kill()
    await victim.ended
    const underWay = await server.query('select from runs where begun_at is not null')
    const leased = await server.query('select from runs where holder is not null')
    // It had leased more than it had begun: of these runs the test is.
    expect(leased.length).toBeGreaterThan(underWay.length)

    const heir = new HandlingProcess(options)
    await heir.started
    const startedAt = performance.now()
    const left = async () => (await server.query('select from runs')).length
    await expect.poll(left, { interval: 100 }).toBe(0)
    expect(performance.now() - startedAt).toBeLessThan(DONE_WITHIN_MS + SLACK_MS)

    const executions = await ledger.executions()
    expect(executions.length).toBe(new Set(executions.map(({ run_id, attempt }) => `${run_id} ${attempt}`)).size)
    const called = await jobsOf()
    const ends = await server.query<{ job_id: string; outcome: number }>(
      'select job_id, outcome from attempts where final',
    )
    expect(ends).toHaveLength(jobs.length)
    expect(ends.filter(({ job_id }) => !called.has(job_id))).toEqual([])
    // What was at work and must not be repeated has ended badly, and nothing else has.
    expect(ends.filter(({ outcome }) => outcome !== 1)).toHaveLength(underWay.length)
  },
  60_000 + 20 * RUNS,
)
