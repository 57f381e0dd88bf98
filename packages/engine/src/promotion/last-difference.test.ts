import { expect, test } from 'vitest'
import { compileSchedule } from '../schedule/compile-schedule.ts'
import { lastDifference } from './last-difference.ts'

const MINUTE = 60_000
const of = (cron: string) => compileSchedule({ cron, timezone: 'UTC' })
const hour = { after: -1, until: 60 * MINUTE }

test('the last time that only one of two schedules has is found from either side', () => {
  const [tens, others] = [of('*/10 * * * *'), of('0,10,30,40,50 * * * *')]
  expect(lastDifference(tens, others, hour)).toBe(20 * MINUTE)
  expect(lastDifference(others, tens, hour)).toBe(20 * MINUTE)
  expect(lastDifference(tens, others, { after: 20 * MINUTE, until: 60 * MINUTE })).toBeNull()
  expect(lastDifference(tens, tens, hour)).toBeNull()
})

test('of very many times the newest are compared, and those before them count as different', () => {
  const seconds = of('* * * * * *')
  const until = 10_000_000
  expect(lastDifference(seconds, seconds, { after: 0, until })).toBe(until - 999_000 - 1)
})
