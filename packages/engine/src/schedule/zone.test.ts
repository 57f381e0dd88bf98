import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { BelfryError } from '../errors.ts'
import { zoneOf } from './zone.ts'
import { wallClock, ZoneOffsets } from './zone-offsets.ts'
import { ZoneYears } from './zone-years.ts'

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

test.each(['Asia/Calcutta', 'US/Pacific', 'EST5EDT', 'EST', 'MST', 'HST', 'CET', 'Etc/GMT+5', 'Japan', 'GB', 'GMT0'])(
  'the old name %s is still one',
  (name) => {
    expect(['UTC', name]).toContain(zoneOf(name).name)
  },
)

test.each(['SST', 'NST', 'ECT', 'PST', 'ACT', 'MIT', 'SystemV/EST5', 'US/Pacific-New', 'Canada/East-Saskatchewan'])(
  'the runtime takes %s, which is no name of the IANA data',
  (name) => {
    expect(() => zoneOf(name)).toThrow('there is no time zone')
  },
)

test('what UTC-5 is called is explained', () => {
  expect(() => zoneOf('UTC-5')).toThrow('Etc/GMT+5 is 5 hours behind UTC')
  expect(() => zoneOf('GMT+2')).toThrow('Etc/GMT-2 is 2 hours ahead of UTC')
})

test('far years are as the runtime says', () => {
  const irregular = ['Africa/Casablanca', 'Asia/Gaza', 'Europe/Dublin', 'Australia/Lord_Howe', 'America/Santiago']
  const others = Intl.supportedValuesOf('timeZone').filter((_, index) => index % 20 === 7)
  for (const name of [...irregular, ...others]) {
    const zone = zoneOf(name)
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    const clock = (instant: number) => {
      const [month, day, year, ...time] = format.format(instant).split(/\D+/).map(Number)
      return Date.UTC(year as number, (month as number) - 1, day, ...time)
    }
    for (const year of [2037, 2038, 2050, 2087, 2088, 2101, 2400, 9998]) {
      for (
        let instant = Date.UTC(year, 0, 1);
        instant < Date.UTC(year + 1, 0, 1);
        instant = zone.stretchAt(instant).until
      ) {
        for (const probe of [instant - 1_000, instant, instant + 20 * 86_400_000]) {
          if (zone.localOf(probe) !== clock(probe)) expect.unreachable(`${name} at ${new Date(probe).toISOString()}`)
        }
      }
    }
  }
})

test('all years to come take few questions to the runtime', () => {
  const offsets = new ZoneOffsets('America/Denver', wallClock('America/Denver') as Intl.DateTimeFormat)
  const asked = vi.spyOn(offsets, 'at')
  const years = new ZoneYears(offsets)
  for (let year = 2038; year < 9990; year++) years.stretchAt(Date.UTC(year, 6, 1))
  expect(asked.mock.calls.length).toBeLessThan(14 * 260 + 62 * 50)
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
  ['BST', 'Europe/London'],
  ['ast', 'America/Halifax'],
  ['IST', 'Asia/Kolkata'],
  ['CST', 'America/Chicago'],
  ['UTC-5', 'Etc/GMT+5'],
  ['GMT+2', 'Etc/GMT-2'],
  ['utc+02:00', 'Etc/GMT-2'],
  ['GMT-00', 'UTC'],
])('%j is no zone; %s is suggested', (name, suggestion) => {
  try {
    zoneOf(name)
    expect.unreachable()
  } catch (error) {
    expect((error as BelfryError).message).toContain('there is no time zone')
    expect((error as BelfryError).complaints[0]?.suggestion).toBe(suggestion)
  }
})
