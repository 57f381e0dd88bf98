import { expect, inject, onTestFinished, test } from 'vitest'
import type { Overlap } from '../../src/job/states.ts'
import { startTestKit, type TestKit } from '../../src/testing/index.ts'
import { createDatabase, KIT_DAYS } from '../database.ts'
import { at, MINUTE, SECOND, START } from './kit.ts'

const leave = { running: 'leave' } as const
const EVERY_TEN = { every: 'PT10M', startAt: at(10 * MINUTE), queue: 'reports', payload: 1, timeout: '1d' } as const
const never = new Promise(() => {})
const minutesOf = (date: Date): number => (date.getTime() - START) / MINUTE

/** Two nodes. The first is left in the middle of something and never moves again, as if it were killed there. */
async function setup() {
  const { schema, query, drop } = await createDatabase({ days: KIT_DAYS })
  onTestFinished(drop)
  const kit = async (seed: number): Promise<TestKit> => {
    const made = await startTestKit({ database: inject('postgres'), schema, seed, shards: 1, leaseMs: 30_000 })
    onTestFinished(() => made.stop())
    return made
  }
  const dead = await kit(1)
  const states = async (jobId: string) => {
    const rows = await query<{ nominal_at: Date; state: number }>(
      'select nominal_at, state from runs where job_id = $1 order by nominal_at',
      [jobId],
    )
    return rows.map(
      ({ nominal_at, state }) => `${minutesOf(nominal_at)} ${['ready', 'leased', 'waiting', 'blocked'][state]}`,
    )
  }
  /** Another node, at the same instant or later, with a handler that never ends unless it is told. */
  const takeOver = async (laterMs: number) => {
    const alive = await kit(2)
    alive.clock.advance(dead.clock.now() - alive.clock.now() + laterMs)
    const ends: (() => void)[] = []
    const started: number[] = []
    await alive.handle('reports', (run) => {
      started.push(minutesOf(run.nominalAt))
      return new Promise<void>((resolve) => ends.push(resolve))
    })
    const end = async () => {
      ends.shift()?.()
      await alive.settle(leave)
    }
    return { alive, started, end }
  }
  return { query, dead, states, takeOver }
}

test.each<[Overlap, string[]]>([
  ['buffer_one', ['10 leased', '20 blocked']],
  ['buffer_latest', ['10 leased', '30 blocked']],
  ['buffer_all', ['10 leased', '20 blocked', '30 blocked']],
])('a node that dies between promotion and start leaves the policy %s in force', async (overlap, expected) => {
  const t = await setup()
  // The run is born leased to a handler that never begins: the node dies right after its commit.
  await t.dead.handle('reports', () => never)
  const { jobId } = await t.dead.jobs.create({ ...EVERY_TEN, overlap })
  await t.dead.pass(10 * MINUTE, leave)
  expect(await t.states(jobId)).toEqual(['10 leased'])
  const { alive, started, end } = await t.takeOver(0)
  // Without its holder the lease expires, is reaped and leased again; it stays the one that is alive.
  await alive.pass(21 * MINUTE, leave)
  expect(started).toEqual([10])
  expect(await t.states(jobId)).toEqual(expected)
  await end()
  expect(started).toEqual([10, overlap === 'buffer_latest' ? 30 : 20])
})

test('a node that dies after the promotion that asked a run to stop: the new one starts when the old one is reaped', async () => {
  const t = await setup()
  await t.dead.handle('reports', () => never)
  const { jobId } = await t.dead.jobs.create({ ...EVERY_TEN, overlap: 'cancel_running' })
  await t.dead.pass(20 * MINUTE, leave)
  expect(await t.states(jobId)).toEqual(['10 leased', '20 blocked'])
  const { alive, started } = await t.takeOver(SECOND)
  await alive.settle(leave)
  expect(started).toEqual([])
  await alive.pass(40 * SECOND, leave)
  expect(started).toEqual([20])
  expect(await alive.runs.list({ jobId, status: 'canceled' })).toMatchObject({
    items: [{ nominalAt: at(10 * MINUTE) }],
  })
})

test('a node that dies between the end of a run and its wake-up: the sweep of another finds the next one', async () => {
  const t = await setup()
  let letGo = () => {}
  await t.dead.handle(
    'reports',
    () =>
      new Promise<void>((resolve) => {
        letGo = resolve
      }),
  )
  const { jobId } = await t.dead.jobs.create({ ...EVERY_TEN, overlap: 'buffer_all' })
  await t.dead.pass(30 * MINUTE, leave)
  letGo()
  await t.query('select')
  // The end is committed, and nobody has been told: this node makes no more steps.
  await expect.poll(() => t.states(jobId)).toEqual(['20 blocked', '30 blocked'])
  const { alive, started, end } = await t.takeOver(0)
  // One pulse to be given the shard, one that looks: two seconds of a living node.
  await alive.pulse()
  await alive.pulse()
  expect(await alive.wakeWaiting()).toBe(1)
  expect(await t.states(jobId)).toEqual(['20 ready', '30 blocked'])
  await alive.settle(leave)
  await end()
  expect(started).toEqual([20, 30])
})

test('while every blocked run has its reason the pulse names none, so nothing more is sent', async () => {
  const t = await setup()
  await t.dead.handle('reports', () => never)
  const { jobId } = await t.dead.jobs.create({ ...EVERY_TEN, overlap: 'buffer_all' })
  await t.dead.pass(30 * MINUTE, leave)
  expect(await t.states(jobId)).toEqual(['10 leased', '20 blocked', '30 blocked'])
  const [before] = await t.query<{ n: number }>('select sum(version)::int as n from timers')
  for (let i = 0; i < 3; i++) {
    await t.dead.pulse()
    expect(await t.dead.wakeWaiting()).toBe(0)
  }
  expect(await t.query('select sum(version)::int as n from timers')).toEqual([before])
})
