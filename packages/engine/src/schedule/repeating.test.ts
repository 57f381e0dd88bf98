import { expect, test } from 'vitest'
import { compileSchedule } from './compile-schedule.ts'
import { type Repeating, readRepeating } from './repeating.ts'

const at = (text: string) => Date.parse(text)

test.each<[string, Repeating]>([
  ['R5/2026-12-01T00:00:00Z/PT15M', { every: 'PT15M', startAt: at('2026-12-01T00:00:00Z'), count: 5 }],
  ['R/2026-12-01T00:00:00+01:00/P1M', { every: 'P1M', startAt: at('2026-11-30T23:00:00Z') }],
  ['R5/PT15M', { every: 'PT15M', count: 5 }],
  ['R/P1D', { every: 'P1D' }],
  ['R3/2026-12-01T00:00:00Z/2026-12-01T00:15:00Z', { every: 'PT15M', startAt: at('2026-12-01T00:00:00Z'), count: 3 }],
  [
    'R5/P1D/2026-12-06T00:00:00Z',
    { every: 'P1D', startAt: at('2026-12-01T00:00:00Z'), endAt: at('2026-12-06T00:00:00Z'), count: 5 },
  ],
])('%s is understood', (text, expected) => {
  expect(readRepeating(text)).toEqual(expected)
})

test.each(['PT15M', 'every day', '', 'RANDOM'])('%j is no repeating interval', (text) => {
  expect(readRepeating(text)).toBeNull()
})

test.each([
  ['R0/PT15M', 'R0 never fires'],
  ['R-1/PT15M', 'negative'],
  ['Rx/PT15M', 'must begin with R'],
  ['R9999999999/PT15M', 'too many'],
  ['R99999999999999999999/PT15M', 'too many times: R takes 1 to 1000000000'],
  ['R5/2026-12-01T00:00:00Z/2026-11-01T00:00:00Z', 'ends before it starts'],
  ['R5/2026-12-01T00:00:00Z/2026-12-01T00:00:00Z', 'ends before it starts'],
  ['R5/0001-01-01T00:00:00Z/PT15M', 'before 1970'],
  ['R5/9999-12-31T00:00:00Z/PT15M', 'too far ahead'],
  ['R/P1D/2026-12-06T00:00:00Z', 'number of times'],
  ['R5/P1M/2026-12-06T00:00:00Z', 'write a start instead'],
  ['R1000000/P1D/2026-12-06T00:00:00Z', 'before 1970'],
  ['R5/2026-12-01T00:00:00Z/PT15M/P1D', 'more than a start'],
  ['R5/2026-12-01/PT15M', 'is not a time'],
  ['R5/PT0S', 'shorter than a second'],
  ['R5/P200Y', 'longer than 100 years'],
  ['R5/', 'is not a duration'],
])('%s is refused', (text, message) => {
  expect(() => readRepeating(text)).toThrow(message)
})

test('an interval that is counted back from its end fires as often as it says, and ends there', () => {
  const { every, startAt, endAt, count } = readRepeating('R5/PT15M/2026-12-06T00:00:00Z') as Required<Repeating>
  const schedule = compileSchedule({ every, timezone: 'UTC', anchor: startAt, endAt, count })
  expect(schedule.count(0, at('2030-01-01T00:00:00Z'), 100)).toBe(5)
  expect(schedule.latest(at('2030-01-01T00:00:00Z'), 0)).toBe(at('2026-12-05T23:45:00Z'))
})
