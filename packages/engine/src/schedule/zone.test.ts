import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { BelfryError } from '../errors.ts'
import { zoneOf } from './zone.ts'

const at = (text: string) => Date.parse(text)
const wall = (text: string) => Date.parse(`${text}Z`)

test('a zone knows its wall clock, in summer and in winter', () => {
  const berlin = zoneOf('Europe/Berlin')
  expect(berlin.localOf(at('2026-01-15T10:00:00.123Z'))).toBe(wall('2026-01-15T11:00:00.123'))
  expect(berlin.instantOf(wall('2026-07-15T12:00:00.123'))).toBe(at('2026-07-15T10:00:00.123Z'))
})

test('a local time that does not exist is the first instant after the gap', () => {
  expect(zoneOf('Europe/Berlin').instantOf(wall('2026-03-29T02:30:00'))).toBe(at('2026-03-29T01:00:00Z'))
  expect(zoneOf('America/New_York').instantOf(wall('2026-03-08T02:00:00'))).toBe(at('2026-03-08T07:00:00Z'))
  expect(zoneOf('Australia/Lord_Howe').instantOf(wall('2026-10-04T02:15:00'))).toBe(at('2026-10-03T15:30:00Z'))
  // Samoa went over the date line and left out a whole day.
  expect(zoneOf('Pacific/Apia').instantOf(wall('2011-12-30T10:00:00'))).toBe(at('2011-12-30T10:00:00Z'))
})

test('a local time that comes twice is its first pass', () => {
  expect(zoneOf('Europe/Berlin').instantOf(wall('2026-10-25T02:30:00'))).toBe(at('2026-10-25T00:30:00Z'))
  expect(zoneOf('America/New_York').instantOf(wall('2026-11-01T01:30:00'))).toBe(at('2026-11-01T05:30:00Z'))
})

test.each(['UTC', 'Europe/Berlin', 'America/St_Johns', 'Asia/Kathmandu', 'Africa/Casablanca', 'Pacific/Chatham'])(
  'in %s every instant is found again from its wall clock, or the same wall clock came earlier',
  (name) => {
    const zone = zoneOf(name)
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(2060, 0, 1) }), (instant) => {
        const local = zone.localOf(instant)
        const found = zone.instantOf(local)
        expect(zone.localOf(found)).toBe(local)
        expect(found).toBeLessThanOrEqual(instant)
      }),
    )
  },
)

test('names are taken in any case, and names for UTC are UTC', () => {
  expect(zoneOf('europe/BERLIN').name).toBe('Europe/Berlin')
  expect(zoneOf('Asia/Kolkata').name).toBe('Asia/Kolkata')
  for (const name of ['UTC', 'utc', 'Etc/UTC', 'GMT']) expect(zoneOf(name).name).toBe('UTC')
})

test.each([
  ['Europe/Brelin', 'Europe/Berlin'],
  ['Berlin', 'Europe/Berlin'],
  ['new york', 'America/New_York'],
  ['Americas/New_York', 'America/New_York'],
  ['ETC', 'UTC'],
  ['+02:00', undefined],
  ['', undefined],
  ['nowhere at all', undefined],
])('%j is no zone; %s is suggested', (name, suggestion) => {
  try {
    zoneOf(name)
    expect.unreachable()
  } catch (error) {
    expect((error as BelfryError).message).toContain('there is no time zone')
    expect((error as BelfryError).complaints[0]?.suggestion).toBe(suggestion)
  }
})
