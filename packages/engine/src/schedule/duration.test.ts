import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BelfryError } from '../errors.ts'
import { clockMs, type Duration, formatDuration, parseDuration } from './duration.ts'

test.each<[string, Duration]>([
  ['PT15M', { kind: 'clock', ms: 900_000 }],
  ['PT0S', { kind: 'clock', ms: 0 }],
  ['P0D', { kind: 'clock', ms: 0 }],
  ['PT0.5S', { kind: 'clock', ms: 500 }],
  ['PT1,001S', { kind: 'clock', ms: 1_001 }],
  ['PT0.5H', { kind: 'clock', ms: 1_800_000 }],
  ['PT36H', { kind: 'clock', ms: 129_600_000 }],
  ['P1D', { kind: 'date', months: 0, days: 1, ms: 0 }],
  ['P1W', { kind: 'date', months: 0, days: 7, ms: 0 }],
  ['P1M', { kind: 'date', months: 1, days: 0, ms: 0 }],
  ['P1Y2M3W4DT5H6M7.089S', { kind: 'date', months: 14, days: 25, ms: 18_367_089 }],
  ['P1DT12H', { kind: 'date', months: 0, days: 1, ms: 43_200_000 }],
  ['90s', { kind: 'clock', ms: 90_000 }],
  ['10m', { kind: 'clock', ms: 600_000 }],
  ['1h30m', { kind: 'clock', ms: 5_400_000 }],
  ['1.5h', { kind: 'clock', ms: 5_400_000 }],
  ['500ms', { kind: 'clock', ms: 500 }],
  ['1m500ms', { kind: 'clock', ms: 60_500 }],
  ['2d', { kind: 'date', months: 0, days: 2, ms: 0 }],
  ['1w2d3h', { kind: 'date', months: 0, days: 9, ms: 10_800_000 }],
])('%s is understood', (text, duration) => {
  expect(parseDuration(text)).toEqual(duration)
})

test.each<[unknown, string, string?]>([
  [90, 'not the number 90', '90s'],
  [-1, 'not the number -1', '90s'],
  [Number.NaN, 'not the number NaN', '90s'],
  ['90', 'has no unit', '90s'],
  ['', 'is not a duration'],
  ['P', 'is not a duration'],
  ['PT', 'is not a duration'],
  ['P1DT', 'is not a duration'],
  ['1y', 'is not a duration'],
  ['10 minutes', 'is not a duration', '10m'],
  ['10 min', 'is not a duration', '10m'],
  ['2 Hours', 'is not a duration', '2h'],
  ['500 millis', 'is not a duration', '500ms'],
  ['pt15m', 'is not a duration', 'PT15M'],
  [' 90s', 'is not a duration', '90s'],
  ['30m1h', 'is not a duration'],
  ['1.5h30m', 'is not a duration'],
  ['PT1.5H30M', 'is not a duration'],
  ['1.5d', 'is not a duration'],
  ['-PT5M', 'is negative'],
  ['-5m', 'is negative'],
  ['PT0.0001S', 'finer than a millisecond'],
  ['0.5ms', 'finer than a millisecond'],
  ['P101Y', 'longer than 100 years'],
  ['99999999h', 'longer than 100 years'],
  [`${'9'.repeat(50)}s`, 'longer than 100 years'],
  ['1'.repeat(1_000), 'too long'],
  ['1e3s', 'is not a duration'],
  ['٣s', 'is not a duration'],
  [null, 'not null'],
  [{}, 'not an object'],
  [['1s'], 'not a list'],
])('%j is refused', (value, message, suggestion) => {
  expect(() => parseDuration(value)).toThrow(message)
  try {
    parseDuration(value)
  } catch (error) {
    expect(error).toBeInstanceOf(BelfryError)
    expect((error as BelfryError).complaints[0]?.suggestion).toBe(suggestion)
  }
})

test('elapsed time takes days of 24 hours and refuses months', () => {
  expect(clockMs('P1DT12H')).toBe(129_600_000)
  expect(clockMs('1w')).toBe(604_800_000)
  expect(() => clockMs('P1M')).toThrow('no fixed length')
  expect(() => clockMs('P1Y')).toThrow('no fixed length')
})

const durations = fc.oneof(
  fc.record({ kind: fc.constant('clock' as const), ms: fc.nat(1e12) }),
  fc
    .record({
      kind: fc.constant('date' as const),
      months: fc.nat(1_200),
      days: fc.nat(30_000),
      ms: fc.nat(1e9),
    })
    .filter((duration) => duration.months + duration.days > 0),
)

test('a duration is written in one way, and read back as itself', () => {
  fc.assert(
    fc.property(durations, (duration) => {
      const text = formatDuration(duration)
      expect(parseDuration(text)).toEqual(duration)
      expect(formatDuration(parseDuration(text))).toBe(text)
    }),
  )
})

test('whatever text is given, the answer is a duration or a BelfryError', () => {
  const pieces = fc.array(
    fc.constantFrom('P', 'T', '1', '0', '.', ',', 'Y', 'M', 'W', 'D', 'H', 'S', 'm', 's', 'h', '-'),
  )
  fc.assert(
    fc.property(
      fc.oneof(
        pieces.map((list) => list.join('')),
        fc.string(),
      ),
      (text) => {
        try {
          const duration = parseDuration(text)
          expect(Number.isInteger(duration.ms) && duration.ms >= 0).toBe(true)
        } catch (error) {
          expect(error).toBeInstanceOf(BelfryError)
        }
      },
    ),
    { numRuns: 2_000 },
  )
})
