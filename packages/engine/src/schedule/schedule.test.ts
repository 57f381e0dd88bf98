import { expect, test } from 'vitest'
import type { ResolvedSpec } from '../job/definition.ts'
import { canonicalSchedule, scheduleId } from './schedule.ts'

test('equal schedules are the same text, in whatever order they were written', () => {
  const one: ResolvedSpec = { cron: '0 9 * * *', timezone: 'UTC', startAt: 5, endAt: 9 }
  const other: ResolvedSpec = { endAt: 9, timezone: 'UTC', startAt: 5, cron: '0 9 * * *' }
  expect(canonicalSchedule(one)).toBe('{"cron":"0 9 * * *","timezone":"UTC","startAt":5,"endAt":9}')
  expect(canonicalSchedule(other)).toBe(canonicalSchedule(one))
  expect(scheduleId(other)).toBe(scheduleId(one))
})

test('what is the default is left out', () => {
  const usual: ResolvedSpec = {
    every: 'PT1H',
    timezone: 'UTC',
    anchor: 7,
    catchUp: { policy: 'latest', windowMs: 3_600_000, max: 1_000 },
  }
  expect(canonicalSchedule(usual)).toBe('{"every":"PT1H","timezone":"UTC","anchor":7}')
  const all: ResolvedSpec = { ...usual, catchUp: { max: 5, policy: 'all', windowMs: 1 } }
  expect(canonicalSchedule(all)).toBe(
    '{"every":"PT1H","timezone":"UTC","anchor":7,"catchUp":{"policy":"all","windowMs":1,"max":5}}',
  )
})

test('schedules that differ in anything have different ids, which fit a bigint', () => {
  const base: ResolvedSpec = { cron: '0 9 * * *', timezone: 'UTC' }
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
  const spec: ResolvedSpec = { cron: '0 9 * * *', timezone: 'Europe/Berlin', startAt: 5 }
  expect(JSON.parse(canonicalSchedule(spec))).toEqual(spec)
})

test('what is new in a schedule comes after what was there, in a fixed order', () => {
  const spec: ResolvedSpec = {
    onExcluded: 'next_business_day',
    exclude: [
      { weekend: [6, 0, 6], days: ['2026-12-26', '2026-12-25', '2026-12-26'] },
      { to: '2026-08-31', from: '2026-08-01' },
      { toAt: 9, fromAt: 5 },
      { cron: '* 3 * * *' },
      { date: '2026-12-31' },
    ],
    dst: { overlap: 'both', gap: 'skip' },
    endAt: 9,
    timezone: 'UTC',
    cron: ['0 9 * * *', '0 17 * * *', '0 9 * * *'],
  }
  const text =
    '{"cron":["0 17 * * *","0 9 * * *"],"timezone":"UTC","endAt":9,"dst":{"gap":"skip","overlap":"both"},"exclude":[' +
    '{"days":["2026-12-25","2026-12-26"],"weekend":[0,6]},{"from":"2026-08-01","to":"2026-08-31"},' +
    '{"fromAt":5,"toAt":9},{"cron":"* 3 * * *"},{"date":"2026-12-31"}],"onExcluded":"next_business_day"}'
  expect(canonicalSchedule(spec)).toBe(text)
  expect(canonicalSchedule(JSON.parse(text))).toBe(text)
})

test('what says nothing changes nothing', () => {
  const plain = '{"cron":"0 9 * * *","timezone":"UTC"}'
  const spec: ResolvedSpec = {
    cron: ['0 9 * * *'],
    timezone: 'UTC',
    dst: {},
    exclude: [],
    onExcluded: 'next_business_day',
  }
  expect(canonicalSchedule(spec)).toBe(plain)
})

test('the ids of schedules that are stored already do not change', () => {
  expect(scheduleId({ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', startAt: 5 })).toBe('-7775568579784200103')
  expect(scheduleId({ every: 'PT1H', timezone: 'UTC', anchor: 7, count: 3 })).toBe('-8516374166475712419')
})
