import { expect, onTestFinished, test } from 'vitest'
import { audit, readAttempts } from './chaos-audit.ts'
import { Chance } from './chaos-chance.ts'
import { Ledger } from './chaos-ledger.ts'
import { HandlingProcess } from './handling-process.ts'
import { startLosingAnswers } from './lossy-answers.ts'
import { startTestServer } from './server.ts'

const RUNS = 1_000
const WORKERS = 3
/** Far longer than the test: whoever waited for a lease to run out would be seen. */
const LEASE_MS = 600_000
const EVERYTHING_MS = 60_000
const HANDLER_ERROR = 6

async function setup() {
  const server = await startTestServer()
  onTestFinished(() => server.stop())
  const ledger = await Ledger.open()
  const lossy = await startLosingAnswers(server.port, 10)
  const options = { url: lossy.url, key: server.adminKey, queue: 'work', ledger, leaseMs: LEASE_MS, graceMs: 5_000 }
  const workers = Array.from({ length: WORKERS }, () => new HandlingProcess({ ...options, concurrency: 10 }))
  await Promise.all(workers.map(({ started }) => started))
  return { server, ledger, lossy, workers }
}

function newJob(chance: Chance) {
  const payload = {
    ms: Math.round(chance.between(0, 30)),
    steps: chance.happens(0.1) ? 2 : 0,
    fails: chance.happens(0.05),
    snoozes: chance.happens(0.05),
  }
  // One failure that was none would use up what is left.
  return {
    queue: 'work',
    payload,
    timeout: '1h',
    retry: { maxAttempts: 2, backoff: { type: 'fixed' as const, initial: '50ms' } },
  }
}

test('every tenth answer may be lost after the server has committed, and no outcome changes', async () => {
  const t = await setup()
  const chance = new Chance(11)
  const jobs = Array.from({ length: RUNS }, () => newJob(chance))
  const began = performance.now()
  const client = t.server.client()
  const created: string[] = []
  for (let at = 0; at < RUNS; at += 100)
    created.push(...(await client.jobs.createMany(jobs.slice(at, at + 100))).map(({ jobId }) => jobId))
  const open = async () => (await t.server.query<{ open: number }>('select count(*)::int as open from runs'))[0]?.open
  await expect.poll(open, { timeout: EVERYTHING_MS, interval: 50 }).toBe(0)
  expect(performance.now() - began).toBeLessThan(LEASE_MS / 5)

  for (const worker of t.workers) worker.signal('SIGTERM')
  expect(await Promise.all(t.workers.map(({ ended }) => ended))).toEqual(t.workers.map(() => 0))
  expect(await audit(t.server.query, t.ledger)).toEqual([])

  const attempts = await readAttempts(t.server.query)
  const ends = new Map(attempts.filter(({ final }) => final).map((one) => [one.runId.split('.')[0], one.outcome]))
  expect(created.filter((jobId) => ends.get(jobId) !== 'succeeded')).toEqual([])

  // Whatever else stands in history is what handlers said, or was in an answer that nobody heard.
  const payloadOf = new Map(created.map((jobId, i) => [jobId, jobs[i]?.payload]))
  const vanished = new Set(
    t.lossy.lost
      .filter(({ path }) => path.endsWith('/lease'))
      .flatMap(({ body }) => (JSON.parse(body) as { runs: { runId: string; attempt: number }[] }).runs)
      .map(({ runId, attempt }) => `${runId} ${attempt}`),
  )
  const performed = new Set((await t.ledger.executions()).map(({ run_id, attempt }) => `${run_id} ${attempt}`))
  for (const one of attempts) {
    const payload = payloadOf.get(one.runId.split('.')[0] ?? '')
    const fence = `${one.runId} ${one.number}`
    if (one.outcome === 'failed') {
      expect(one).toMatchObject({ number: 1, failureClass: HANDLER_ERROR, counted: true })
      expect(payload?.fails).toBe(true)
    } else if (one.outcome === 'snoozed') expect(payload?.snoozes).toBe(true)
    else if (one.outcome === 'released') {
      expect(one.counted).toBe(false)
      expect(vanished.has(fence), `${fence} was released`).toBe(true)
      expect(performed.has(fence), `${fence} was performed and released`).toBe(false)
    } else expect(one.outcome).toBe('succeeded')
  }

  const lost = t.lossy.lost.map(({ path, body }) => ({
    path,
    told: JSON.parse(body || '{}') as { results?: unknown[] },
  }))
  expect(lost.filter(({ path }) => path.endsWith('/heartbeat')).length).toBeGreaterThan(0)
  expect(lost.filter(({ told }) => told.results !== undefined).length, 'lost answers of completions').toBeGreaterThan(0)
  expect(vanished.size).toBeGreaterThan(0)
  expect(t.lossy.lost.length).toBe(Math.floor(t.lossy.answered / 10))
})
