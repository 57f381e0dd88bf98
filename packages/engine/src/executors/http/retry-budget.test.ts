import { expect, test } from 'vitest'
import { seededRandom } from '../../runtime/random.ts'
import { RETRY_BUDGET, RetryBudget } from './retry-budget.ts'

const START = 1_700_000_000_000
const random = seededRandom(1)

/** Asks for retries every 10 ms; answers how many of them were let through in each second. */
function retriesPerSecond(budget: RetryBudget, seconds: number, { firstsPerSecond = 0, nodes = 1 } = {}): number[] {
  return Array.from({ length: seconds }, (_, second) => {
    let taken = 0
    for (let i = 0; i < 100; i++) {
      const now = START + second * 1_000 + i * 10
      for (let j = 0; j < firstsPerSecond / 100; j++) budget.first(now)
      if (budget.takeRetry(now, nodes)) taken++
    }
    return taken
  })
}
const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)

test('without first attempts there is still one retry a second, and no more than sixty a minute', () => {
  const taken = retriesPerSecond(new RetryBudget(RETRY_BUDGET), 180)
  expect(sum(taken)).toBeGreaterThanOrEqual(170)
  for (let from = 0; from <= 120; from++) expect(sum(taken.slice(from, from + 60))).toBeLessThanOrEqual(70)
  expect(Math.max(...taken)).toBeLessThanOrEqual(10)
})

test('a busy target gets one retry for five first attempts of the last minute', () => {
  const taken = retriesPerSecond(new RetryBudget(RETRY_BUDGET), 180, { firstsPerSecond: 100 })
  expect(sum(taken.slice(120)) / (60 * 100)).toBeCloseTo(0.2, 1)
  expect(sum(taken.slice(120))).toBeLessThanOrEqual(0.2 * 60 * 100 + 60)
})

test('what is always allowed is divided by the nodes', () => {
  const taken = retriesPerSecond(new RetryBudget(RETRY_BUDGET), 180, { nodes: 4 })
  expect(sum(taken.slice(60)) / 120).toBeLessThanOrEqual(0.3)
})

test('whoever is over the budget comes back one after the other, no faster than the budget lets through, and soon', () => {
  const budget = new RetryBudget(RETRY_BUDGET)
  const waits = Array.from({ length: 100 }, () => budget.returnAt(START, 1, random) - START)
  expect(waits.slice(0, 30)).toEqual(Array.from({ length: 30 }, (_, i) => 1_000 + i * 1_000))
  expect(Math.max(...waits)).toBeLessThanOrEqual(31_000)
})

test('retries that go well buy further ones, and as soon as they fail again the old limit holds', () => {
  const budget = new RetryBudget(RETRY_BUDGET)
  const second = (at: number, goesWell: boolean) => {
    let taken = 0
    for (let now = at; now < at + 1_000; now += 5) {
      if (!budget.takeRetry(now, 1)) continue
      taken++
      if (goesWell) budget.retryWentWell(now)
    }
    return taken
  }
  const well = Array.from({ length: 40 }, (_, i) => second(START + i * 1_000, true))
  expect(sum(well.slice(0, 5))).toBeLessThanOrEqual(20)
  expect(Math.max(...well)).toBeGreaterThanOrEqual(100)
  const ill = Array.from({ length: 60 }, (_, i) => second(START + 40_000 + i * 1_000, false))
  expect(sum(ill.slice(15))).toBeLessThanOrEqual(70)
})
