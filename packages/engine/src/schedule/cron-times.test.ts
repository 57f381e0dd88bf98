import { expect, test } from 'vitest'
import type { DstPolicy, ResolvedSpec } from '../job/definition.ts'
import { compileSchedule } from './compile-schedule.ts'

const at = (text: string) => Date.parse(text)

/** The fire times of some hours, by the clock in UTC. */
function fires(spec: ResolvedSpec, from: string, until: string): string[] {
  const schedule = compileSchedule(spec)
  const times: string[] = []
  for (let fire = schedule.next(at(from) - 1); fire !== null && fire < at(until); fire = schedule.next(fire)) {
    times.push(new Date(fire).toISOString().slice(5, 16))
  }
  return times
}

/** 02:00 became 03:00 at 01:00 UTC. */
const spring = (cron: string, dst?: DstPolicy) =>
  fires({ cron, timezone: 'Europe/Berlin', ...(dst && { dst }) }, '2026-03-29T00:00:00Z', '2026-03-29T02:00:00Z')
/** 03:00 became 02:00 at 01:00 UTC. */
const autumn = (cron: string, dst?: DstPolicy) =>
  fires({ cron, timezone: 'Europe/Berlin', ...(dst && { dst }) }, '2026-10-25T00:00:00Z', '2026-10-25T02:00:00Z')

test('a number or a list of hours fires once, at the end of the gap', () => {
  expect(spring('30 2 * * *')).toEqual(['03-29T01:00'])
  expect(spring('*/15 2 * * *')).toEqual(['03-29T01:00'])
  expect(spring('30 2,3 * * *')).toEqual(['03-29T01:00', '03-29T01:30'])
  expect(spring('0 2,3 * * *')).toEqual(['03-29T01:00'])
})

test('a range, a step or a star of hours has nothing to fire in the gap', () => {
  expect(spring('30 * * * *')).toEqual(['03-29T00:30', '03-29T01:30'])
  expect(spring('30 1-3 * * *')).toEqual(['03-29T00:30', '03-29T01:30'])
  expect(spring('30 2-2 * * *')).toEqual(['03-29T01:00'])
  expect(spring('30 */2 * * *')).toEqual([])
})

test('a number or a list of hours fires in the first pass of a repeated hour', () => {
  expect(autumn('30 2 * * *')).toEqual(['10-25T00:30'])
  expect(autumn('0,30 2,14 * * *')).toEqual(['10-25T00:00', '10-25T00:30'])
})

test('a range, a step or a star of hours fires in both', () => {
  expect(autumn('30 * * * *')).toEqual(['10-25T00:30', '10-25T01:30'])
  expect(autumn('30 1-3 * * *')).toEqual(['10-25T00:30', '10-25T01:30'])
})

test('what a schedule says about changes of the clocks replaces the usual, each for itself', () => {
  expect(spring('30 2 * * *', { gap: 'skip' })).toEqual([])
  expect(spring('30 * * * *', { gap: 'after' })).toEqual(['03-29T00:30', '03-29T01:00', '03-29T01:30'])
  expect(spring('30 2 * * *', { overlap: 'both' })).toEqual(['03-29T01:00'])
  expect(autumn('30 2 * * *', { overlap: 'both' })).toEqual(['10-25T00:30', '10-25T01:30'])
  expect(autumn('30 2 * * *', { overlap: 'last' })).toEqual(['10-25T01:30'])
  expect(autumn('30 * * * *', { overlap: 'first' })).toEqual(['10-25T00:30'])
  expect(autumn('30 * * * *', { overlap: 'last' })).toEqual(['10-25T01:30'])
})

test.each<[name: string, timezone: string, cron: string, from: string, until: string, times: string[]]>([
  [
    'half an hour',
    'Australia/Lord_Howe',
    '15 2 * * *',
    '2026-10-03T15:00:00Z',
    '2026-10-03T16:00:00Z',
    ['10-03T15:30'],
  ],
  [
    'half an hour twice',
    'Australia/Lord_Howe',
    '45 * * * *',
    '2026-04-04T14:00:00Z',
    '2026-04-04T16:00:00Z',
    ['04-04T14:45', '04-04T15:15'],
  ],
  ['two hours', 'Antarctica/Troll', '30 1,2 * * *', '2026-03-29T00:00:00Z', '2026-03-29T02:00:00Z', ['03-29T01:00']],
  ['midnight', 'America/Havana', '0 0 * * *', '2026-03-08T04:00:00Z', '2026-03-08T06:00:00Z', ['03-08T05:00']],
  ['midnight', 'Africa/Cairo', '30 0 * * *', '2026-04-23T20:00:00Z', '2026-04-24T02:00:00Z', ['04-23T22:00']],
  ['midnight', 'Asia/Beirut', '0 0 * * *', '2026-03-28T20:00:00Z', '2026-03-29T02:00:00Z', ['03-28T22:00']],
  ['midnight twice', 'America/Havana', '30 0 * * *', '2026-11-01T04:00:00Z', '2026-11-01T06:00:00Z', ['11-01T04:30']],
  ['midnight', 'Atlantic/Azores', '30 0 * * *', '2026-03-29T00:00:00Z', '2026-03-29T02:00:00Z', ['03-29T01:00']],
  ['Ramadan', 'Africa/Casablanca', '30 2 * * *', '2026-02-15T00:00:00Z', '2026-02-15T04:00:00Z', ['02-15T01:30']],
  [
    'a whole day',
    'Pacific/Apia',
    '0 9 * * *',
    '2011-12-29T12:00:00Z',
    '2011-12-31T12:00:00Z',
    ['12-29T19:00', '12-30T10:00', '12-30T19:00'],
  ],
  [
    'a whole day',
    'Pacific/Apia',
    '0 */12 * * *',
    '2011-12-30T00:00:00Z',
    '2011-12-31T00:00:00Z',
    ['12-30T10:00', '12-30T22:00'],
  ],
  [
    'seconds',
    'Africa/Monrovia',
    '0 12 * * *',
    '1972-01-06T12:00:00Z',
    '1972-01-08T00:00:00Z',
    ['01-06T12:44', '01-07T12:00'],
  ],
])('clocks that skip or repeat %s: %s, %s', (_name, timezone, cron, from, until, times) => {
  expect(fires({ cron, timezone }, from, until)).toEqual(times)
})

test('what is excluded stays so, even if the clocks move it', () => {
  const spec: ResolvedSpec = { cron: '30 2 * * *', timezone: 'Europe/Berlin' }
  const excluding = (cron: string) =>
    fires({ ...spec, exclude: [{ cron }] }, '2026-03-28T00:00:00Z', '2026-03-31T00:00:00Z')
  expect(excluding('* 2 * * *')).toEqual([])
  expect(excluding('* 3 * * *')).toEqual(['03-28T01:30', '03-30T00:30'])
})

test('a time on an excluded day moves to the next business day, and equal times are one', () => {
  const spec: ResolvedSpec = {
    cron: ['0 9 * * *', '0 17 * * 6'],
    timezone: 'UTC',
    exclude: [{ days: ['2026-12-25'], weekend: [6, 0] }],
    onExcluded: 'next_business_day',
  }
  expect(fires(spec, '2026-12-24T00:00:00Z', '2026-12-30T00:00:00Z')).toEqual([
    '12-24T09:00',
    '12-28T09:00',
    '12-28T17:00',
    '12-29T09:00',
  ])
  const schedule = compileSchedule(spec)
  expect(schedule.latest(at('2026-12-28T08:59:59Z'), 0)).toBe(at('2026-12-24T09:00:00Z'))
  expect(schedule.count(at('2026-12-24T09:00:00Z'), at('2026-12-29T09:00:00Z'), 10)).toBe(3)
})

test('nothing moves before the start or past the end', () => {
  const weekly: ResolvedSpec = {
    cron: '0 9 * * 0',
    timezone: 'UTC',
    exclude: [{ days: [], weekend: [0] }],
    onExcluded: 'next_business_day',
  }
  const bounded = { ...weekly, startAt: at('2026-12-21T00:00:00Z'), endAt: at('2027-01-04T09:00:00Z') }
  expect(fires(bounded, '2026-12-01T00:00:00Z', '2027-02-01T00:00:00Z')).toEqual(['12-28T09:00'])
})
