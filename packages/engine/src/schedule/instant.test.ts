import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BelfryError } from '../errors.ts'
import { parseInstant } from './instant.ts'

test.each<[unknown, number]>([
  ['2026-01-31T09:00:00Z', Date.UTC(2026, 0, 31, 9)],
  ['2026-01-31t09:00:00z', Date.UTC(2026, 0, 31, 9)],
  ['2026-01-31 09:00:00Z', Date.UTC(2026, 0, 31, 9)],
  ['2026-01-31T09:00:00.5Z', Date.UTC(2026, 0, 31, 9, 0, 0, 500)],
  ['2026-01-31T09:00:00.123999Z', Date.UTC(2026, 0, 31, 9, 0, 0, 123)],
  ['2026-01-31T09:00:00+02:00', Date.UTC(2026, 0, 31, 7)],
  ['2026-01-31T09:00:00-03:30', Date.UTC(2026, 0, 31, 12, 30)],
  ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
  [new Date(5), 5],
])('%s is understood', (value, instant) => {
  expect(parseInstant(value)).toBe(instant)
})

test.each<[unknown, string, string?]>([
  ['2026-01-31', 'is not a time', '2026-01-31T00:00:00Z'],
  ['2026-01-31T09:00:00', 'lacks its offset', '2026-01-31T09:00:00Z'],
  ['2026-01-31T09:00', 'lacks its offset', '2026-01-31T09:00:00Z'],
  ['2026-01-31T09:00Z', 'lacks its seconds', '2026-01-31T09:00:00Z'],
  ['2026-02-30T09:00:00Z', 'does not exist'],
  ['2026-13-01T09:00:00Z', 'does not exist'],
  ['2026-01-00T09:00:00Z', 'does not exist'],
  ['2026-01-31T24:00:00Z', 'does not exist'],
  ['2026-01-31T09:60:00Z', 'does not exist'],
  ['2026-01-31T09:00:60Z', 'does not exist'],
  ['2026-01-31T09:00:00+25:00', 'an offset that does not exist'],
  ['tomorrow', 'is not a time'],
  ['', 'is not a time'],
  [1_769_850_000_000, 'not the number', '2026-01-31T09:00:00.000Z'],
  [Number.NaN, 'not the number NaN'],
  [new Date(Number.NaN), 'invalid Date'],
  [null, 'not null'],
  [true, 'not true'],
  [{}, 'not an object'],
])('%s is refused', (value, message, suggestion) => {
  expect(() => parseInstant(value)).toThrow(message)
  try {
    parseInstant(value)
  } catch (error) {
    expect((error as BelfryError).complaints[0]?.suggestion).toBe(suggestion)
  }
})

test('what a Date writes is read back', () => {
  fc.assert(
    fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }), (date) => {
      expect(parseInstant(date.toISOString())).toBe(date.getTime())
    }),
  )
})

test('whatever text is given, the answer is an instant or a BelfryError', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$/), (text) => {
      try {
        expect(Number.isInteger(parseInstant(text))).toBe(true)
      } catch (error) {
        expect(error).toBeInstanceOf(BelfryError)
      }
    }),
  )
})

test.each(['0001-01-01T00:00:00Z', '0026-01-31T09:00:00Z', '0000-02-29T00:00:00Z'])(
  '%s is long ago, but a time',
  (text) => {
    expect(new Date(parseInstant(text)).toISOString()).toBe(text.replace('Z', '.000Z'))
  },
)
