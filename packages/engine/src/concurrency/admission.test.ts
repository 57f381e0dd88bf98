import fc from 'fast-check'
import { expect, test } from 'vitest'
import { admit, type Candidate, type HeldKey, ON_LIMIT } from './admission.ts'

const NOW = Date.UTC(2026, 0, 1)
const free: HeldKey = {
  ...{ maxRunning: 2, rate: null, rateAt: 0, onLimit: ON_LIMIT.wait, isPaused: false },
  ...{ leased: 0, asked: 0, oldestLimited: null, oldest: null },
}
const runs = (...times: number[]): Candidate[] => times.map((nominalAt) => ({ nominalAt, hasBegun: false, cost: 1 }))
const at = { now: NOW, workers: 100 }
const timesOf = (list: readonly Candidate[]): number[] => list.map(({ nominalAt }) => nominalAt)

test('the oldest start, as many as are free, and the rest waits', () => {
  const { lease, limit, leavesRoom } = admit({ ...free, leased: 1 }, runs(1, 2, 3), at)
  expect([timesOf(lease), timesOf(limit), leavesRoom]).toEqual([[1], [2, 3], false])
})

test('where there is no worker for all that may start, the others stay ready', () => {
  const { lease, stay, limit } = admit({ ...free, maxRunning: 9 }, runs(1, 2, 3), { now: NOW, workers: 1 })
  expect([timesOf(lease), timesOf(stay), limit]).toEqual([[1], [2, 3], []])
})

test('nobody overtakes an older run that waits; that there is room is said', () => {
  const { lease, limit, leavesRoom } = admit({ ...free, oldestLimited: 2 }, runs(1, 3), at)
  expect([timesOf(lease), timesOf(limit), leavesRoom]).toEqual([[1], [3], true])
})

test('of a limit of 1 nobody starts before an older one that is alive, whatever it waits for', () => {
  const serial = { ...free, maxRunning: 1, oldest: 1 }
  expect(admit(serial, runs(2, 3), at).lease).toEqual([])
  expect(timesOf(admit({ ...serial, oldest: 2 }, runs(2, 3), at).lease)).toEqual([2])
})

test('a paused key lets nothing start, and neither skips nor cancels', () => {
  for (const onLimit of Object.values(ON_LIMIT)) {
    const { lease, skip, ask, limit } = admit({ ...free, isPaused: true, leased: 2, onLimit }, runs(1, 2), at)
    expect([lease, skip, ask, timesOf(limit)]).toEqual([[], [], 0, [1, 2]])
  }
})

test('only who has never begun is skipped, and only for want of a slot', () => {
  const begun = { nominalAt: 1, hasBegun: true, cost: 1 }
  const key = { ...free, leased: 2, onLimit: ON_LIMIT.skip }
  const { skip, limit } = admit(key, [begun, ...runs(2)], at)
  expect([timesOf(skip), timesOf(limit)]).toEqual([[2], [1]])
  const rate = { limit: 1, periodMs: 1_000, burst: 1 }
  const over = admit({ ...free, maxRunning: 9, rate, onLimit: ON_LIMIT.skip }, runs(1, 2), at)
  expect([timesOf(over.lease), over.skip, timesOf(over.limit)]).toEqual([[1], [], [2]])
})

test('no more are asked to stop than wait, and those that were asked before count', () => {
  const key = { ...free, maxRunning: 3, leased: 3, onLimit: ON_LIMIT.cancel_oldest }
  expect(admit(key, runs(1, 2), at).ask).toBe(2)
  expect(admit({ ...key, asked: 1 }, runs(1, 2), at).ask).toBe(1)
  expect(admit({ ...key, asked: 3 }, runs(1, 2), at).ask).toBe(0)
})

test('whatever comes in whatever order: every run has one fate, and no more start than are free and allowed', () => {
  const key = fc.record({
    maxRunning: fc.option(fc.integer({ min: 1, max: 5 })),
    rate: fc.option(
      fc.record({
        limit: fc.integer({ min: 1, max: 9 }),
        periodMs: fc.constant(1_000),
        burst: fc.integer({ min: 1, max: 9 }),
      }),
    ),
    rateAt: fc.integer({ min: -2_000, max: 2_000 }).map((ms) => (NOW + ms) * 1_000),
    onLimit: fc.constantFrom(...Object.values(ON_LIMIT)),
    isPaused: fc.boolean(),
    leased: fc.integer({ min: 0, max: 6 }),
    asked: fc.integer({ min: 0, max: 3 }),
    oldestLimited: fc.option(fc.integer({ min: 0, max: 20 })),
    oldest: fc.option(fc.integer({ min: 0, max: 20 })),
  })
  const candidates = fc.array(
    fc.record({
      nominalAt: fc.integer({ min: 0, max: 20 }),
      hasBegun: fc.boolean(),
      cost: fc.integer({ min: 1, max: 3 }),
    }),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(key, candidates, fc.integer({ min: 0, max: 5 }), (held, list, workers) => {
      const sorted = list.sort((a, b) => a.nominalAt - b.nominalAt)
      const { lease, stay, limit, skip, rateAt, ask } = admit(held, sorted, { now: NOW, workers })
      expect(new Set([...lease, ...stay, ...limit, ...skip]).size).toBe(list.length)
      expect(lease.length + stay.length + limit.length + skip.length).toBe(list.length)
      expect(lease.length).toBeLessThanOrEqual(Math.min(workers, Math.max(0, (held.maxRunning ?? 99) - held.leased)))
      expect(ask).toBeLessThanOrEqual(held.leased)
      if (held.isPaused) expect(lease).toEqual([])
      if (lease.length === 0) expect(rateAt).toBe(held.rateAt)
      if (held.rate && lease.length > 0) {
        const ahead = (rateAt / 1_000 - NOW) / (held.rate.periodMs / held.rate.limit)
        expect(ahead).toBeLessThanOrEqual(held.rate.burst + 0.01)
      }
    }),
    { seed: 11, numRuns: 1_000 },
  )
})
