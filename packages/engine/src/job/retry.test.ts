import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Random } from '../runtime/random.ts'
import { seededRandom } from '../runtime/random.ts'
import type { Backoff } from './definition.ts'
import { backoffMs, retryDecision } from './retry.ts'

const chance = (value: number): Random => ({ float: () => value, bytes: (count) => Buffer.alloc(count) })
const none = chance(0)
const now = 1_800_000_000_000

test('without a policy: five attempts, 5 s doubling to an hour, half of it left to chance', () => {
  const ceilings = Array.from({ length: 12 }, (_, i) => backoffMs(i + 1, undefined, none) / 1_000)
  expect(ceilings).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600])
  expect(backoffMs(1, undefined, chance(0.999999))).toBe(2_500)
  const decide = (failures: number) => retryDecision(undefined, { failures, agesFrom: now, now }, none)
  expect(decide(4)).toEqual({ retry: true, delayMs: 40_000 })
  expect(decide(5)).toEqual({ retry: false, reason: 'attempts_used' })
  expect(decide(6)).toEqual({ retry: false, reason: 'attempts_used' })
})

test.each<[Backoff, number[]]>([
  [{ type: 'fixed', initialMs: 700, jitter: 0 }, [700, 700, 700, 700]],
  [{ type: 'linear', initialMs: 100, maxMs: 250, jitter: 0 }, [100, 200, 250, 250]],
  [{ type: 'exponential', initialMs: 10, factor: 3, maxMs: 100, jitter: 0 }, [10, 30, 90, 100]],
  [{ type: 'list', delaysMs: [5, 50], jitter: 0 }, [5, 50, 50, 50]],
])('the delays of %j', (backoff, delays) => {
  expect(delays.map((_, i) => backoffMs(i + 1, { backoff }, seededRandom(1)))).toEqual(delays)
})

test('a delay is a whole number of milliseconds between its jittered floor and its ceiling', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 1, max: 10, noNaN: true }),
      fc.integer(),
      (failures, jitter, factor, seed) => {
        const backoff: Backoff = { type: 'exponential', initialMs: 1_000, factor, maxMs: 60_000, jitter }
        const delay = backoffMs(failures, { backoff }, seededRandom(seed))
        expect(Number.isInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(Math.floor(1_000 * (1 - jitter)))
        expect(delay).toBeLessThanOrEqual(60_000)
      },
    ),
  )
})

test('what the target asks for wins over the formula, up to a day', () => {
  const decide = (retryAfterMs: number) =>
    retryDecision(undefined, { failures: 1, agesFrom: now, now, retryAfterMs }, none)
  expect(decide(90_000)).toEqual({ retry: true, delayMs: 90_000 })
  expect(decide(0)).toEqual({ retry: true, delayMs: 0 })
  expect(decide(-5)).toEqual({ retry: true, delayMs: 0 })
  expect(decide(1e12)).toEqual({ retry: true, delayMs: 86_400_000 })
})

test('no attempt starts after the greatest age', () => {
  const policy = { maxAgeMs: 60_000, backoff: { type: 'fixed', initialMs: 10_000, jitter: 0 } } as const
  const decide = (age: number) => retryDecision(policy, { failures: 1, agesFrom: now - age, now }, none)
  expect(decide(50_000)).toEqual({ retry: true, delayMs: 10_000 })
  expect(decide(50_001)).toEqual({ retry: false, reason: 'too_old' })
})

test('a single attempt is never repeated', () => {
  expect(retryDecision({ maxAttempts: 1 }, { failures: 1, agesFrom: now, now }, none).retry).toBe(false)
})
