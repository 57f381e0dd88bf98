import { expect, onTestFinished, test } from 'vitest'
import { startTestServer } from './server.ts'

const COUNT = 10_000
const LEASE_MS = 3_000
/** By then whatever a worker held is to be had again, counted from the end of its lease. */
const RECOVERY_MS = 2_000
/** What a machine may add that runs other tests at the same time. What nobody recovers stays away for much longer. */
const SLACK_MS = 3_000

test('ten thousand runs of a worker that died are all had again within its lease and two seconds', async () => {
  const server = await startTestServer()
  onTestFinished(() => server.stop())
  const client = server.client()
  const createdFrom = performance.now()
  for (let made = 0; made < COUNT; made += 2_500)
    await client.jobs.createMany(Array.from({ length: 2_500 }, () => ({ queue: 'many', payload: made })))
  const taken = new Map<string, number>()
  const lease = (workerId: string, ms: number, waitMs: number) =>
    client.leases.lease('many', { workerId, max: 1_000, leaseMs: ms, waitMs })
  let lastUntil = 0
  const began = performance.now()
  const makingMs = began - createdFrom
  while (taken.size < COUNT) {
    const { runs } = await lease('greedy', LEASE_MS, 5_000)
    for (const { runId, attempt, leaseUntil } of runs) {
      taken.set(runId, attempt)
      lastUntil = Math.max(lastUntil, Date.parse(leaseUntil))
    }
  }
  const takingMs = performance.now() - began
  // It took longer to take them than a lease lasts: then some of them are its own again.
  const isSlow = [...taken.values()].some((attempt) => attempt > 1)
  const again = new Map<string, number>()
  while (again.size < COUNT) {
    const { runs } = await lease('next', 600_000, 5_000)
    for (const { runId, attempt } of runs) again.set(runId, attempt)
  }
  const lateMs = Date.now() - lastUntil
  expect(new Set(again.keys())).toEqual(new Set(taken.keys()))
  for (const [runId, attempt] of again) expect(attempt).toBeGreaterThan(taken.get(runId) ?? 0)
  expect(isSlow).toBe(false)
  // To close them and take them again is as much work for the machine as it was to make and take them.
  expect(lateMs).toBeLessThan(RECOVERY_MS + SLACK_MS + takingMs + makingMs)
})
