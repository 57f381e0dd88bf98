import { expect, test } from 'vitest'
import { median, percentile, ratioOf } from './statistics.ts'

const rounds = (...values: number[][]) => new Map(values.map((value, index) => [index + 1, value]))

test('the median of an even number of values is the mean of the two in the middle', () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([9, 1, 5, 7])).toBe(6)
  expect(median([])).toBeNaN()
})

test('a percentile is a value that was seen', () => {
  const values = Array.from({ length: 200 }, (_, index) => 200 - index)
  expect(percentile(values, 0.5)).toBe(100)
  expect(percentile(values, 0.99)).toBe(198)
  expect(percentile([3], 0.95)).toBe(3)
})

test('a ratio is the median of the ratios of pairs, which is not the ratio of the medians', () => {
  const ratio = ratioOf(rounds([10], [40], [90]), rounds([20], [20], [30]))
  expect(ratio).toEqual({ median: 2, least: 0.5, most: 3, pairs: 3 })
})

test('several values of one round count as their median', () => {
  expect(ratioOf(rounds([1, 8, 3]), rounds([2]))).toEqual({ median: 1.5, least: 1.5, most: 1.5, pairs: 1 })
})

test('a round that one side lacks, and one that would be divided by nothing, is no pair', () => {
  expect(ratioOf(rounds([10], [20]), rounds([5]))).toEqual({ median: 2, least: 2, most: 2, pairs: 1 })
  expect(ratioOf(rounds([10], [20]), rounds([0], [40]))).toEqual({ median: 0.5, least: 0.5, most: 0.5, pairs: 1 })
  expect(ratioOf(rounds([0]), rounds([0]))).toBeNull()
  expect(ratioOf(rounds([10]), new Map())).toBeNull()
})
