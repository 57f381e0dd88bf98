import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { START, setup } from './setup.ts'
import { tokensOf, workerOf } from './worker.ts'

const BEHIND_MS = 60_000

/** Two nodes, of which one has slept: its clock stands a minute behind that of the database, which the other one has. */
async function asleep() {
  const t = await setup()
  const [awake, slept] = [await t.startNode(), await t.startNode()]
  awake.clock.advance(BEHIND_MS)
  const leases = () =>
    t.query<{ left: number; timeout: number }>(
      `select extract(epoch from lease_until - to_timestamp($1 / 1000.0))::float8 * 1000 as left, timeout_ms as timeout from runs where holder is not null`,
      [awake.clock.now()],
    )
  return { ...t, awake, slept, leases }
}

test('the database says how long a lease lasts, whatever the clock of the node that asks for it', async () => {
  const t = await asleep()
  // The connections of the node that slept ask a database whose time has gone on.
  await t.databaseTime(t.awake.clock.now())
  const { jobId } = await t.awake.jobs.create({ queue: 'work', payload: 1, timeout: '1h' })
  const worker = workerOf(t.slept)
  const tokens = tokensOf(await worker.lease({ leaseMs: 30_000 }))
  expect((await t.leases()).map(({ left }) => left)).toEqual([30_000])
  expect(await t.awake.reap()).toBe(0)
  expect(await worker.heartbeat(tokens)).toEqual(['ok'])
  expect((await t.leases()).map(({ left }) => left)).toEqual([30_000])
  expect(await worker.complete(tokens)).toEqual(['ok'])
  expect(await t.awake.runs.get(runIdOf(jobId, START + BEHIND_MS))).toMatchObject({ status: 'succeeded' })
})
