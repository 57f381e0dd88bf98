import { expect, test } from 'vitest'
import { canonicalSchedule, type ScheduleSpec, scheduleId } from './schedule.ts'

test('equal schedules are the same text, in whatever order they were written', () => {
  const one: ScheduleSpec = { cron: '0 9 * * *', timezone: 'UTC', startAt: 5, endAt: 9 }
  const other: ScheduleSpec = { endAt: 9, timezone: 'UTC', startAt: 5, cron: '0 9 * * *' }
  expect(canonicalSchedule(one)).toBe('{"cron":"0 9 * * *","timezone":"UTC","startAt":5,"endAt":9}')
  expect(canonicalSchedule(other)).toBe(canonicalSchedule(one))
  expect(scheduleId(other)).toBe(scheduleId(one))
})

test('what is the default is left out', () => {
  const usual: ScheduleSpec = {
    every: 'PT1H',
    timezone: 'UTC',
    anchor: 7,
    catchUp: { policy: 'latest', windowMs: 3_600_000, max: 1_000 },
  }
  expect(canonicalSchedule(usual)).toBe('{"every":"PT1H","timezone":"UTC","anchor":7}')
  const all: ScheduleSpec = { ...usual, catchUp: { max: 5, policy: 'all', windowMs: 1 } }
  expect(canonicalSchedule(all)).toBe(
    '{"every":"PT1H","timezone":"UTC","anchor":7,"catchUp":{"policy":"all","windowMs":1,"max":5}}',
  )
})

test('schedules that differ in anything have different ids, which fit a bigint', () => {
  const base: ScheduleSpec = { cron: '0 9 * * *', timezone: 'UTC' }
  const ids = [
    base,
    { ...base, timezone: 'Europe/Berlin' },
    { ...base, startAt: 1 },
    { ...base, endAt: 1 },
    { ...base, catchUp: { policy: 'none', windowMs: 0, max: 1 } as const },
  ].map(scheduleId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(BigInt.asIntN(64, BigInt(id))).toBe(BigInt(id))
})

test('a canonical text is read back as the schedule it came from', () => {
  const spec: ScheduleSpec = { cron: '0 9 * * *', timezone: 'Europe/Berlin', startAt: 5 }
  expect(JSON.parse(canonicalSchedule(spec))).toEqual(spec)
})
