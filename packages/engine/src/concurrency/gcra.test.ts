import fc from 'fast-check'
import { expect, test } from 'vitest'
import { gcra, type Rate } from './gcra.ts'

const START = Date.UTC(2026, 0, 1)

/** Takes as many as it gets, at each of these instants. */
function take(rate: Rate, instants: readonly number[], wanted = Number.MAX_SAFE_INTEGER): number[] {
  let rateAt = 0
  return instants.map((now) => {
    const { allowed } = gcra(rateAt, rate, now, wanted)
    rateAt = gcra(rateAt, rate, now, allowed).rateAt
    return allowed
  })
}

test('a burst goes at once, and then one in each interval', () => {
  const rate = { limit: 10, periodMs: 1_000, burst: 3 }
  expect(take(rate, [START, START, START + 99, START + 100, START + 150, START + 250])).toEqual([3, 0, 0, 1, 0, 1])
})

test('what was not used is saved up to the burst and no further', () => {
  const rate = { limit: 10, periodMs: 1_000, burst: 3 }
  expect(take(rate, [START, START + 60_000])).toEqual([3, 3])
})

test('it says when the next one may go, and at that instant it may', () => {
  const ratio = fc.record({
    limit: fc.integer({ min: 1, max: 100_000 }),
    periodMs: fc.integer({ min: 1_000, max: 86_400_000 }),
    burst: fc.integer({ min: 1, max: 1_000 }),
  })
  fc.assert(
    fc.property(ratio, fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 30 }), (rate, wanted) => {
      let [rateAt, now] = [0, START]
      for (const want of wanted) {
        const taken = gcra(rateAt, rate, now, want)
        rateAt = taken.rateAt
        if (taken.nextAt > now) expect(gcra(rateAt, rate, taken.nextAt - 1, 1).allowed).toBe(0)
        expect(gcra(rateAt, rate, taken.nextAt, 1).allowed).toBe(1)
        now = taken.nextAt
      }
    }),
    { seed: 7, numRuns: 300 },
  )
})

test('over any time no more goes than the burst and what the rate gives, and who always wants gets nearly all of it', () => {
  for (const rate of [
    { limit: 7, periodMs: 1_000, burst: 5 },
    { limit: 1_000, periodMs: 60_000, burst: 100 },
    { limit: 30_000, periodMs: 1_000, burst: 3_000 },
  ]) {
    const steps = Array.from({ length: 2_000 }, (_, i) => START + i * 17)
    const taken = take(rate, steps)
    const perMs = rate.limit / rate.periodMs
    let sum = 0
    taken.forEach((count, i) => {
      sum += count
      expect(sum).toBeLessThanOrEqual(rate.burst + i * 17 * perMs + 1e-6)
    })
    expect(sum).toBeGreaterThan(1_999 * 17 * perMs - 1)
  }
})

test('who wants less than is there is charged for that alone', () => {
  const rate = { limit: 10, periodMs: 1_000, burst: 10 }
  expect(take(rate, [START, START, START], 4)).toEqual([4, 4, 2])
})

test('what is remembered of any rate can be stored', () => {
  const rate = { limit: 1, periodMs: 366 * 86_400_000, burst: 1_000_000 }
  const { allowed, rateAt } = gcra(0, rate, START, 1_000_000)
  expect(allowed).toBe(1_000_000)
  expect(BigInt(rateAt)).toBeLessThan(2n ** 63n)
  expect(new Date(rateAt / 1_000).getTime()).not.toBeNaN()
})
