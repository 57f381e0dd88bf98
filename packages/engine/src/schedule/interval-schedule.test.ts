import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileSchedule } from './compile-schedule.ts'
import type { Schedule } from './schedule.ts'

const at = (text: string) => Date.parse(text)
const iso = (instant: number | null) =>
  instant === null ? null : new Date(instant).toISOString().replace('.000Z', 'Z')

function fires(schedule: Schedule, after: number, count: number): (string | null)[] {
  const times: (string | null)[] = []
  let last: number | null = after
  for (let i = 0; i < count && last !== null; i++) {
    last = schedule.next(last)
    times.push(iso(last))
  }
  return times
}

test('clock intervals are elapsed time from the anchor, which is the first of them', () => {
  const anchor = at('2026-03-29T00:10:00Z')
  const schedule = compileSchedule({ every: 'PT30M', timezone: 'Europe/Berlin', anchor })
  expect(fires(schedule, anchor - 1, 3)).toEqual([
    '2026-03-29T00:10:00Z',
    '2026-03-29T00:40:00Z',
    '2026-03-29T01:10:00Z',
  ])
  expect(iso(schedule.next(anchor + 10 * 365 * 86_400_000))).toBe('2036-03-26T00:40:00Z')
})

test('a month that is too short lends its last day, and the anchor comes back', () => {
  const monthly = compileSchedule({ every: 'P1M', timezone: 'UTC', anchor: at('2026-01-31T09:00:00Z') })
  expect(fires(monthly, at('2026-01-31T09:00:00Z'), 5)).toEqual([
    '2026-02-28T09:00:00Z',
    '2026-03-31T09:00:00Z',
    '2026-04-30T09:00:00Z',
    '2026-05-31T09:00:00Z',
    '2026-06-30T09:00:00Z',
  ])
  const yearly = compileSchedule({ every: 'P1Y', timezone: 'UTC', anchor: at('2024-02-29T00:00:00Z') })
  expect(fires(yearly, at('2024-02-29T00:00:00Z'), 4)).toEqual([
    '2025-02-28T00:00:00Z',
    '2026-02-28T00:00:00Z',
    '2027-02-28T00:00:00Z',
    '2028-02-29T00:00:00Z',
  ])
})

test('days keep their time on the wall when the clocks change', () => {
  const daily = compileSchedule({ every: 'P1D', timezone: 'Europe/Berlin', anchor: at('2026-03-27T08:00:00Z') })
  expect(fires(daily, at('2026-03-27T08:00:00Z'), 3)).toEqual([
    '2026-03-28T08:00:00Z',
    '2026-03-29T07:00:00Z',
    '2026-03-30T07:00:00Z',
  ])
})

test('a day whose time falls into the gap fires at its end, and the next day is as usual', () => {
  const daily = compileSchedule({ every: 'P1D', timezone: 'Europe/Berlin', anchor: at('2026-03-28T01:30:00Z') })
  expect(fires(daily, at('2026-03-28T01:30:00Z'), 2)).toEqual(['2026-03-29T01:00:00Z', '2026-03-30T00:30:00Z'])
})

test('a schedule ends by its count or its end, whichever comes first', () => {
  const anchor = at('2026-01-01T00:00:00Z')
  const counted = compileSchedule({ every: 'PT1H', timezone: 'UTC', anchor, count: 3 })
  expect(fires(counted, 0, 5)).toEqual(['2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z', '2026-01-01T02:00:00Z', null])
  expect(iso(counted.latest(at('2030-01-01T00:00:00Z'), 0))).toBe('2026-01-01T02:00:00Z')
  expect(counted.count(0, at('2030-01-01T00:00:00Z'), 100)).toBe(3)
  const ended = compileSchedule({ every: 'PT1H', timezone: 'UTC', anchor, endAt: at('2026-01-01T01:00:00Z'), count: 3 })
  expect(fires(ended, 0, 5)).toEqual(['2026-01-01T00:00:00Z', null])
  expect(ended.count(0, at('2030-01-01T00:00:00Z'), 100)).toBe(1)
})

test.each(['PT0.5S', 'PT0S', '500ms', 'P0D'])('%s is too short for a schedule', (every) => {
  expect(() => compileSchedule({ every, timezone: 'UTC', anchor: 0 })).toThrow('shorter than a second')
})

const specs = fc.record({
  every: fc.constantFrom('PT1S', 'PT7M', 'PT36H', 'P1D', 'P1W', 'P1M', 'P3M', 'P1Y', 'P1DT12H', 'P1M1D', 'P2M10DT5H'),
  timezone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns', 'Pacific/Apia'),
  anchor: fc.integer({ min: at('1975-01-01'), max: at('2035-01-01') }),
})
const instants = fc.integer({ min: at('1975-01-01'), max: at('2060-01-01') })

test('next is after, latest is before, and nothing lies between them', () => {
  fc.assert(
    fc.property(specs, instants, (spec, instant) => {
      const schedule = compileSchedule(spec)
      const next = schedule.next(instant)
      const latest = schedule.latest(instant, -1)
      if (next === null) return expect.unreachable('an endless schedule ended')
      expect(next).toBeGreaterThan(instant)
      if (latest === null) {
        expect(next).toBe(spec.anchor)
        return
      }
      expect(latest).toBeLessThanOrEqual(instant)
      expect(schedule.next(latest)).toBe(next)
      expect(schedule.latest(next, latest)).toBe(next)
      expect(schedule.count(latest - 1, next, 10)).toBe(2)
    }),
    { numRuns: 500 },
  )
})
