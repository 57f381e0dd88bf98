import { scheduler } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { audit, LEASE_EXPIRED, readAttempts } from './chaos-audit.ts'
import { Chance } from './chaos-chance.ts'
import { type Answered, Ledger } from './chaos-ledger.ts'
import { HandlingProcess } from './handling-process.ts'
import { startTestServer } from './server.ts'

/** A whole minute over 10,000 runs: `BELFRY_CHAOS_SECONDS=60 BELFRY_CHAOS_RUNS=10000`. */
const SEED = Number(process.env.BELFRY_CHAOS_SEED ?? 7)
const SECONDS = Number(process.env.BELFRY_CHAOS_SECONDS ?? 9)
const RUNS = Number(process.env.BELFRY_CHAOS_RUNS ?? 3_000)
const WORKERS = 5
const LEASE_MS = 2_000
const BATCHES_PER_SECOND = 4
/** Kills must not use up the attempts of a run: that would be another promise. */
const retry = { maxAttempts: 100, backoff: { type: 'fixed' as const, initial: '100ms' } }

async function setup() {
  const server = await startTestServer()
  onTestFinished(() => server.stop())
  const ledger = await Ledger.open()
  const options = {
    ...{ url: server.url, key: server.adminKey, queue: 'work', ledger },
    ...{ leaseMs: LEASE_MS, concurrency: 20, insists: true },
  }
  const all: HandlingProcess[] = []
  const start = () => {
    const one = new HandlingProcess(options)
    all.push(one)
    return one
  }
  const workers = Array.from({ length: WORKERS }, start)
  await Promise.all(workers.map(({ started }) => started))
  return { server, ledger, workers, all, start }
}

type Fleet = Awaited<ReturnType<typeof setup>>

/** Most are short; some outlive many heartbeats, leave checkpoints, fail, or block their whole process. */
function newJob(chance: Chance) {
  const isLong = chance.happens(0.08)
  const payload = {
    ms: Math.round(isLong ? chance.between(1_000, 3_000) : chance.between(0, 60)),
    steps: isLong ? 3 : chance.happens(0.2) ? 1 : 0,
    fails: chance.happens(0.05),
    snoozes: chance.happens(0.03),
    blocksMs: chance.happens(0.003) ? 300 : 0,
  }
  return { queue: 'work', payload, retry }
}

async function createSteadily({ server }: Fleet, chance: Chance): Promise<string[]> {
  const client = server.client()
  const created: string[] = []
  const batches = SECONDS * BATCHES_PER_SECOND
  for (let i = 0; i < batches; i++) {
    const count = Math.ceil(RUNS / batches)
    created.push(
      ...(await client.jobs.createMany(Array.from({ length: count }, () => newJob(chance)))).map((one) => one.jobId),
    )
    await scheduler.wait(1_000 / BATCHES_PER_SECOND)
  }
  return created
}

interface Wreck {
  kills: number
  pauses: number
}

/** Kills one after the other, and has up to two others sleep, for longer than their leases or not. */
async function wreak(t: Fleet, chance: Chance, until: number): Promise<Wreck> {
  const asleep = new Map<HandlingProcess, number>()
  const done = { kills: 0, pauses: 0 }
  while (performance.now() < until || done.kills < 2 || done.pauses < 2) {
    await scheduler.wait(chance.between(200, 700))
    for (const [one, wakesAt] of asleep) {
      if (performance.now() < wakesAt) continue
      one.signal('SIGCONT')
      asleep.delete(one)
    }
    const at = Math.floor(chance.float() * WORKERS)
    const victim = t.workers[at] as HandlingProcess
    // Whoever dies before it has begun harms nobody.
    await victim.started
    if (chance.happens(0.5)) {
      victim.kill()
      asleep.delete(victim)
      t.workers[at] = t.start()
      done.kills++
    } else if (asleep.size < 2 && !asleep.has(victim)) {
      victim.signal('SIGSTOP')
      const isLong = done.pauses === 0 || chance.happens(0.6)
      asleep.set(victim, performance.now() + (isLong ? chance.between(1.3, 2) : chance.between(0.1, 0.8)) * LEASE_MS)
      done.pauses++
    }
  }
  for (const one of asleep.keys()) one.signal('SIGCONT')
  return done
}

test(
  'workers that are killed, paused and woken end every run once, and nobody writes under a lease that is over',
  async () => {
    console.log(`chaos: seed ${SEED}`)
    const t = await setup()
    const until = performance.now() + SECONDS * 1_000
    const [created, wreck] = await Promise.all([
      createSteadily(t, new Chance(SEED)),
      wreak(t, new Chance(SEED + 1), until),
    ])
    const open = async () => (await t.server.query<{ open: number }>('select count(*)::int as open from runs'))[0]?.open
    await expect.poll(open, { timeout: 90_000, interval: 100 }).toBe(0)

    expect(t.all.filter((one) => one.endedByItself)).toEqual([])
    expect(await audit(t.server.query, t.ledger)).toEqual([])
    const attempts = await readAttempts(t.server.query)
    const succeeded = new Set(
      attempts.filter(({ final, outcome }) => final && outcome === 'succeeded').map(({ runId }) => runId.split('.')[0]),
    )
    expect(created.filter((jobId) => !succeeded.has(jobId))).toEqual([])
    expect(succeeded.size).toBe(created.length)

    // It was no walk in the park: leases ran out, and late workers tried to write and were refused.
    const expired = attempts.filter(({ failureClass }) => failureClass === LEASE_EXPIRED).length
    const answers = t.ledger.answers()
    const refused = (items: (told: Answered['told']) => { outcome: string }[] | undefined) =>
      answers.flatMap(({ told }) => items(told) ?? []).filter(({ outcome }) => outcome === 'lease_lost').length
    const [lateCompletions, lateHeartbeats] = [refused(({ results }) => results), refused(({ leases }) => leases)]
    const found = (await t.ledger.executions()).filter(({ got }) => got !== null).length
    const had = { ...wreck, expired, found, lateCompletions, lateHeartbeats }
    if (process.env.BELFRY_CHAOS_SAY) console.log({ created: created.length, attempts: attempts.length, ...had })
    for (const [what, count] of Object.entries(had)) expect(count, what).toBeGreaterThan(0)
  },
  SECONDS * 10_000 + 120_000,
)
