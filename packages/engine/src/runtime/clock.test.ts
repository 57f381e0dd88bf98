import { expect, test } from 'vitest'
import { SystemClock } from './clock.ts'

const NOW = Date.UTC(2026, 0, 1)

/** A machine whose clocks move as told: together, while it sleeps the wall clock alone, or as its clock is set. */
function setup({ wallAheadMs = 0 } = {}) {
  let [wall, monotonic, database] = [NOW + wallAheadMs, 5_000, NOW]
  const jumps: number[] = []
  const clock = new SystemClock(
    { onJump: (offsetMs) => jumps.push(Math.round(offsetMs)) },
    { wall: () => wall, monotonic: () => monotonic },
  )
  return {
    clock,
    jumps,
    pass: (ms: number) => {
      wall += ms
      monotonic += ms
      database += ms
    },
    suspend: (ms: number) => {
      wall += ms
      database += ms
    },
    setWall: (ms: number) => {
      wall += ms
    },
    setDatabase: (ms: number) => {
      database += ms
    },
    pulse: (roundTripMs = 2) => clock.observe(database - roundTripMs / 2, roundTripMs),
    /** How far the clock is from the database's. */
    off: () => clock.now() - database,
  }
}

test('a machine whose clock is ahead or behind has the time of the database from the first pulse on', () => {
  for (const wallAheadMs of [22_000, -22_000]) {
    const t = setup({ wallAheadMs })
    expect(t.clock.isTrusted).toBe(false)
    t.clock.now()
    t.pulse()
    expect(t.off()).toBe(0)
    expect(t.clock.isTrusted).toBe(true)
    t.pass(1_500)
    expect(t.off()).toBe(0)
  }
})

test.each([20_000, -20_000])(
  'a step of the database by %i ms is followed at once, and trusted when the next sample agrees',
  (ms) => {
    const t = setup()
    t.pulse()
    t.setDatabase(ms)
    t.pass(1_000)
    t.pulse()
    expect(t.off()).toBe(0)
    expect(t.clock.isTrusted).toBe(false)
    expect(t.jumps).toEqual([ms])
    t.pulse()
    expect(t.clock.isTrusted).toBe(true)
    expect(t.off()).toBe(0)
  },
)

test('a machine that slept does not trust its clock before the database was asked', () => {
  const t = setup()
  t.pulse()
  t.suspend(60_000)
  expect(t.clock.isTrusted).toBe(false)
  t.pulse()
  expect(t.off()).toBe(0)
  t.pulse()
  expect(t.clock.isTrusted).toBe(true)
})

test('a machine whose clock is set to another time keeps the time of the database', () => {
  const t = setup()
  t.pulse()
  t.setWall(3_600_000)
  expect(t.clock.isTrusted).toBe(false)
  expect(t.off()).toBe(0)
  t.pulse()
  expect(t.clock.isTrusted).toBe(true)
  expect(t.jumps).toEqual([])
})

test('a slow answer says little about the time, and is no jump', () => {
  const t = setup()
  t.pulse()
  t.pass(4_000)
  // The database read its clock at the end of the four seconds.
  t.clock.observe(NOW + 4_000, 4_000)
  expect(t.clock.isTrusted).toBe(true)
  expect(t.jumps).toEqual([])
  expect(Math.abs(t.off())).toBeLessThanOrEqual(1)
})

test('a drift is followed slowly and without a step back', () => {
  const t = setup()
  t.pulse()
  let last = t.clock.now()
  for (let second = 0; second < 20; second++) {
    t.setDatabase(-10)
    for (let i = 0; i < 10; i++) {
      t.pass(100)
      expect(t.clock.now()).toBeGreaterThanOrEqual(last)
      last = t.clock.now()
    }
    t.pulse(1)
    expect(t.clock.isTrusted).toBe(true)
  }
  expect(Math.abs(t.off())).toBeLessThan(60)
})
