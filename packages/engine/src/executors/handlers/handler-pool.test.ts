import { expect, test } from 'vitest'
import type { Lease } from '../../leases/lease.ts'
import { ManualClock } from '../../runtime/clock.ts'
import type { RunServices } from './active-run.ts'
import { HandlerPool } from './handler-pool.ts'

const SLOTS = 40
const WORK_MS = 10

const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function setup() {
  const clock = new ManualClock()
  let begun: { turn: number | undefined; end: () => void }[] = []
  const pool = new HandlerPool(
    1,
    (run, settle) => begun.push({ turn: run.lease.turn, end: () => settle({ returned: undefined }) }),
    SLOTS,
    { clock, services: {} as RunServices, onEnd() {}, onRoom() {} },
  )
  let next = 1_000
  const lease = (turn: number): Lease =>
    ({
      turn,
      leasedAt: clock.now(),
      leaseUntil: Number.POSITIVE_INFINITY,
      deadline: Number.POSITIVE_INFINITY,
      limitKey: null,
    }) as unknown as Lease
  return {
    clock,
    pool,
    arrive: async (turn: number) => {
      pool.accept([lease(turn)])
      await turnOfLoop()
    },
    lease: (count: number) => pool.accept(Array.from({ length: count }, () => lease(next++))),
    /** All that has begun takes as long. */
    work: async () => {
      await turnOfLoop()
      clock.advance(WORK_MS)
      const ending = begun
      begun = []
      for (const { end } of ending) end()
      await turnOfLoop()
    },
    begunTurns: () => begun.map(({ turn }) => turn),
  }
}

test('while some overtake a backlog of short work, a slot is free when the next of them comes', async () => {
  const t = setup()
  t.lease(3_000)
  for (let round = 0; round < 30; round++) await t.work()
  expect(t.pool.active.size).toBe(SLOTS)
  await t.arrive(1)
  expect(t.begunTurns()).not.toContain(1)
  await t.work()
  expect(t.begunTurns()).toContain(1)
  await t.work()
  expect(t.pool.active.size).toBe(SLOTS - 2)
  await t.arrive(2)
  expect(t.begunTurns()).toContain(2)
})

test('nothing is kept for those who overtake when none has come for a second', async () => {
  const t = setup()
  t.lease(6_000)
  for (let round = 0; round < 30; round++) await t.work()
  await t.arrive(1)
  await t.work()
  await t.work()
  expect(t.pool.active.size).toBe(SLOTS - 2)
  t.clock.advance(1_000)
  await t.work()
  expect(t.pool.active.size).toBe(SLOTS)
})

/** Work that was short until now. */
async function quick() {
  const t = setup()
  t.lease(25 * SLOTS)
  for (let round = 0; round < 25; round++) await t.work()
  expect(t.pool.active.size).toBe(0)
  expect(t.pool.credit()).toBeGreaterThan(SLOTS)
  return t
}

test('what has waited for a second goes away once, and nothing is leased ahead of a slot for ten seconds', async () => {
  const t = await quick()
  t.lease(SLOTS + 10)
  await turnOfLoop()
  expect(t.pool.waiting).toBe(10)
  t.clock.advance(999)
  expect(t.pool.takeOverdue(t.clock.now())).toEqual([])
  t.clock.advance(1)
  expect(t.pool.takeOverdue(t.clock.now())).toHaveLength(10)
  expect(t.pool.takeOverdue(t.clock.now())).toEqual([])
  for (let round = 0; round < 10; round++) {
    await t.work()
    expect(t.pool.credit()).toBe(SLOTS)
    t.lease(SLOTS)
  }
  t.clock.advance(10_000)
  for (let round = 0; round < 10; round++) {
    await t.work()
    t.lease(SLOTS)
  }
  expect(t.pool.credit()).toBeGreaterThan(0)
})

test('while nothing has ended for a second nothing is leased ahead of a slot', async () => {
  const t = await quick()
  t.clock.advance(1_001)
  expect(t.pool.credit()).toBe(SLOTS)
})
