import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { scheduler } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { Chance } from './chance.ts'
import { CountingTarget } from './counting-target.ts'
import { createDatabase } from './database.ts'
import { NodeProcess } from './node-process.ts'

const SEED = Number(process.env.BELFRY_CHAOS_SEED ?? 3)
const SECONDS = Number(process.env.BELFRY_CHAOS_SECONDS ?? 12)
const CREATES_PER_SECOND = Number(process.env.BELFRY_CHAOS_CREATES ?? 100)
const NODES = 3
const KILL_EVERY_MS = 3_000
const TICK_MS = 50
const ANSWER_MS = 5_000
/** As many as may be under way: who had to wait here for a connection would have no time left for the answer. */
const CONNECTIONS = 256
/** Leases must run out, and the retry budget spreads what was cut. */
const LEASES_END_MS = 60_000 + SECONDS * 5_000

async function setup() {
  const [database, target] = await Promise.all([createDatabase(), CountingTarget.open()])
  const key = `admin_${randomBytes(24).toString('hex')}`
  const environment = {
    BELFRY_DATABASE_URL: database.url,
    BELFRY_ADMIN_KEY: key,
    BELFRY_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    BELFRY_ALLOW_PRIVATE_TARGETS: '1',
    BELFRY_PROCESSES: String(NODES),
  }
  const fleet = new NodeProcess(environment)
  const url = await fleet.url
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  onTestFinished(() => agent.destroy())
  const post = async (job: object): Promise<{ status: number; body: string }> => {
    const call = request(`${url}/v1/jobs`, {
      method: 'POST',
      agent,
      signal: AbortSignal.timeout(ANSWER_MS),
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    })
    call.end(JSON.stringify(job))
    const [answer] = (await once(call, 'response')) as [IncomingMessage]
    return { status: answer.statusCode ?? 0, body: await text(answer) }
  }
  const create = async (delayMs: number): Promise<string | null> => {
    // Kills must not use up the attempts of a run: that would be another promise.
    const job = {
      http: { url: target.url },
      payload: { some: 'thing' },
      retry: { maxAttempts: 50, backoff: { type: 'fixed', initial: '200ms' } },
      // Also how long a lease lasts at most: what a kill has cut is taken up again after it.
      timeout: '8s',
      ...(delayMs > 0 ? { delay: `${delayMs}ms` } : {}),
    }
    // The connection broke, or went down with the process it was handed to: whether the job exists is unknown.
    const answer = await post(job).catch(() => null)
    if (answer === null || answer.status === 503) return null
    if (answer.status !== 201) throw new Error(`${answer.status} ${answer.body}`)
    return (JSON.parse(answer.body) as { jobId: string }).jobId
  }
  return { database, target, fleet, create }
}

type Fleet = Awaited<ReturnType<typeof setup>>

/** Creates at a steady rate; answers what was acknowledged. */
async function createSteadily(t: Fleet, chance: Chance, until: number): Promise<string[]> {
  const acknowledged: string[] = []
  const pending = new Set<Promise<void>>()
  const began = performance.now()
  for (let asked = 0; performance.now() < until; ) {
    const wanted = ((performance.now() - began) / 1_000) * CREATES_PER_SECOND
    for (; asked < wanted && pending.size < CONNECTIONS; asked++) {
      const delayMs = chance.happens(0.7) ? 0 : chance.integer(100, 4_000)
      const one = t.create(delayMs).then((jobId) => {
        if (jobId !== null) acknowledged.push(jobId)
      })
      const settled = one.finally(() => pending.delete(settled))
      pending.add(settled)
    }
    await scheduler.wait(TICK_MS)
  }
  await Promise.all(pending)
  return acknowledged
}

async function killNodes(t: Fleet, chance: Chance, until: number): Promise<number> {
  let kills = 0
  while (performance.now() + KILL_EVERY_MS < until) {
    await scheduler.wait(KILL_EVERY_MS * (0.7 + chance.float() * 0.6))
    const alive = t.fleet.children()
    if (alive.length === 0) continue
    process.kill(chance.pick(alive), 'SIGKILL')
    kills++
  }
  return kills
}

interface AttemptRow {
  job_id: string
  run: string
  number: number
  final: boolean
  outcome: number
}

test(
  'through kill -9 of one of three nodes every few seconds, every job that was acknowledged calls its target',
  async () => {
    const t = await setup()
    const chance = new Chance(SEED)
    const until = performance.now() + SECONDS * 1_000
    const [acknowledged, kills] = await Promise.all([
      createSteadily(t, chance, until),
      killNodes(t, new Chance(SEED + 1), until),
    ])
    expect(kills).toBeGreaterThan(0)
    expect(acknowledged.length).toBeGreaterThan(SECONDS * CREATES_PER_SECOND * 0.1)
    const open = 'select (select count(*) from belfry.runs)::int + (select count(*) from belfry.timers)::int as open'
    const stillOpen = async () => (await t.database.query<{ open: number }>(open))[0]?.open
    await expect.poll(stillOpen, { timeout: LEASES_END_MS, interval: 250 }).toBe(0)

    const called = new Map<string, number>()
    for (const { runId, attempt } of t.target.calls)
      called.set(`${runId} ${attempt}`, (called.get(`${runId} ${attempt}`) ?? 0) + 1)
    const calledJobs = new Set(t.target.calls.map(({ jobId }) => jobId))
    expect(acknowledged.filter((jobId) => !calledJobs.has(jobId))).toEqual([])
    expect([...called].filter(([, times]) => times > 1)).toEqual([])

    // A run was called again only if the attempt before was cut: exactly one attempt of each succeeded.
    const attempts = await t.database.query<AttemptRow>(
      `select job_id, concat(job_id, '.', extract(epoch from nominal_at)) as run, number, final, outcome from belfry.attempts`,
    )
    const succeeded = attempts.filter(({ outcome, final }) => outcome === 1 && final).map(({ job_id }) => job_id)
    expect(new Set(succeeded).size).toBe(succeeded.length)
    expect(new Set(attempts.map(({ run }) => run)).size).toBe(succeeded.length)
    const done = new Set(succeeded)
    expect(acknowledged.filter((jobId) => !done.has(jobId))).toEqual([])
    expect(t.target.calls.length).toBeLessThanOrEqual(attempts.length)
    expect(t.target.calls.every(({ runId, idempotencyKey }) => runId === idempotencyKey)).toBe(true)
    expect(t.fleet.endedByItself, t.fleet.said).toBe(false)
    if (process.env.BELFRY_CHAOS_SAY)
      console.log({ acknowledged: acknowledged.length, kills, calls: t.target.calls.length, attempts: attempts.length })
  },
  (SECONDS + 30) * 1_000 + LEASES_END_MS,
)
