import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ScheduleSpec } from '../../src/job/definition.ts'
import { canonicalCron } from '../../src/schedule/cron-text.ts'
import { readWhen } from '../../src/schedule/english/read-when.ts'
import { sentenceOf, sentenceOfOnce } from '../../src/schedule/english/sentence-of.ts'
import { zoneOf } from '../../src/schedule/zone.ts'
import { specOf, timesOf } from './phrase-table.ts'

const NOW = Date.parse('2026-11-18T09:20:30Z')
const BERLIN = { timezone: 'Europe/Berlin' }
const DAY = 86_400_000

test.each<[string | string[], string]>([
  ['0 9 * * 1-5', 'at 09:00 from Monday to Friday'],
  ['* * * * *', 'every minute'],
  ['*/15 * * * *', 'every 15 minutes'],
  ['*/7 * * * *', 'every hour at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56'],
  ['5/15 * * * *', 'every hour at minutes 5, 20, 35 and 50'],
  ['@daily', 'every day at 00:00'],
  ['@weekly', 'at 00:00 on Sundays'],
  ['0 9,17 * * *', 'every day at 09:00 and 17:00'],
  [['0 9 * * *', '30 17 * * *'], 'every day at 09:00 and 17:30'],
  [['0 9 * * 1', '0 15 * * 5'], 'at 09:00 on Mondays; and at 15:00 on Fridays'],
  ['0 9-17 * * 1-5', 'every hour from 09:00 to 17:00 from Monday to Friday'],
  ['*/10 9-16 * * *', 'every 10 minutes from 09:00 to 16:50'],
  ['15 */2 * * *', 'every 2 hours at minute 15'],
  ['0 */5 * * *', 'every 5 hours from 00:00 to 20:00'],
  ['0 0-6,22-23 * * *', 'every day at minute 0 of hours 0 to 6 and hours 22 to 23'],
  ['0 6 1,15 * *', 'at 06:00 on the 1st and 15th of every month'],
  ['0 0 L * *', 'at 00:00 on the last day of every month'],
  ['0 0 L-3 * *', 'at 00:00 on the 3rd day before the last of every month'],
  ['0 0 LW * *', 'at 00:00 on the last weekday of every month'],
  ['0 0 15W * *', 'at 00:00 on the weekday nearest to the 15th of every month'],
  ['0 10 * * 1#1,1#3', 'at 10:00 on the first Monday and the third Monday of every month'],
  ['0 10 * * 5L', 'at 10:00 on the last Friday of every month'],
  ['0 9 13 * 5', 'at 09:00 on the 13th of every month or on Fridays'],
  ['0 9 24 12 *', 'at 09:00 on the 24th of every December'],
  ['0 9 * 6-8 1', 'at 09:00 on Mondays in June, July and August'],
  ['0 9 */2 * *', 'at 09:00 on every 2nd day from the first of every month'],
  ['0 */2 1,15 * *', 'every 2 hours on the 1st and 15th of the month'],
  ['30 0 9 * * *', 'every day at 09:00:30'],
  ['*/30 * * * * *', 'every 30 seconds'],
  ['30 * * * * *', 'every minute at second 30'],
  [
    '0/20 */5 9-17 * * 1-5',
    'at every 20th second from 0 to 59 of every 5th minute from the first of hours 9 to 17 from Monday to Friday',
  ],
  ['H * * * *', "every hour at a minute of the job's own"],
  ['H H * * *', "every day at a time of the job's own"],
  ['H/15 * * * *', "every 15 minutes from a minute of the job's own"],
  ['H 3 * * 1', "at a minute of the job's own of hour 3 on Mondays"],
  ['H(0-29)/10 9-17 * * *', "every day at every 10th minute from 0 to 29 (from one of the job's own) of hours 9 to 17"],
  ['H H 1 H *', "at a time of the job's own on the 1st of a month of the job's own"],
  ['0 9 1 H/3 *', "at 09:00 on the 1st of every 3rd month (from one of the job's own)"],
  ['0 9 * * 0-7', 'every day at 09:00'],
  ['*/5 * * * 1-7', 'every 5 minutes'],
  ['0 9 13 * 0-7', 'at 09:00 on the 13th of every month or on every day of the week'],
  ['0 9 H * *', "at 09:00 on a day of the job's own of every month"],
])('%j is said as "%s"', (cron, sentence) => {
  const canonical = typeof cron === 'string' ? canonicalCron(cron) : cron
  expect(sentenceOf({ cron: canonical, ...BERLIN })).toBe(`${sentence}, Europe/Berlin`)
})

const at = (text: string) => Date.parse(text)

test.each<[Partial<ScheduleSpec> & Record<string, unknown>, string]>([
  [{ startAt: at('2026-12-01T00:00:00+01:00') }, 'not before 2026-12-01'],
  [{ startAt: at('2026-12-01T09:30:00+01:00') }, 'not before 2026-12-01 at 09:30'],
  [{ endAt: at('2027-04-01T00:00:00+02:00') }, 'until 2027-03-31'],
  [{ endAt: at('2027-03-31T17:00:00+02:00') }, 'until 2027-03-31 at 17:00'],
  [{ startAt: at('2026-10-25T01:30:00Z') }, 'not before 2026-10-25T01:30:00.000Z'],
  [
    { exclude: [{ date: '2026-12-25' }, { from: '2026-12-27', to: '2027-01-02' }, { calendar: 'holidays' }] },
    'except on 2026-12-25, from 2026-12-27 to 2027-01-02 and on days of the calendar "holidays"',
  ],
  [
    { exclude: [{ cron: '0 12 * * *' }, { fromAt: at('2026-12-01T00:00:00Z'), toAt: at('2026-12-02T00:00:00Z') }] },
    'except at times of "0 12 * * *" and from 2026-12-01T00:00:00.000Z to 2026-12-02T00:00:00.000Z',
  ],
  [
    { exclude: [{ calendar: 'holidays' }], onExcluded: 'next_business_day' },
    'except on days of the calendar "holidays", moved to the next business day instead',
  ],
  [{ dst: { gap: 'skip' } }, 'a time that the clocks skip does not fire'],
  [
    { dst: { gap: 'after', overlap: 'both' } },
    'a time that the clocks skip fires right after the gap, a time that comes twice fires both times',
  ],
  [{ dst: { overlap: 'last' } }, 'a time that comes twice fires the second time'],
])('%j is said as "%s"', (options, words) => {
  const spec = { cron: '0 9 * * *', ...BERLIN, ...options } as ScheduleSpec
  expect(sentenceOf(spec)).toBe(`every day at 09:00, ${words}, Europe/Berlin`)
})

test('many exclusions are counted and not listed', () => {
  const exclude = Array.from({ length: 8 }, (_, index) => ({ date: `2026-12-0${index + 1}` }))
  expect(sentenceOf({ cron: '0 9 * * *', timezone: 'UTC', exclude })).toContain('on 2026-12-05 and 3 more exclusions')
})

test.each([
  ['PT1H30M', 'every 90 minutes'],
  ['PT24H', 'every 24 hours'],
  ['PT45S', 'every 45 seconds'],
  ['PT0.5S', 'every 0.5 seconds'],
  ['P1D', 'every day'],
  ['P14D', 'every 2 weeks'],
  ['P1Y6M', 'every 18 months'],
  ['P1Y', 'every year'],
  ['P1DT12H', 'every 1 day and 12 hours'],
  ['P1M15D', 'every 1 month and 15 days'],
])('the interval %s is said as "%s"', (every, words) => {
  const anchor = at('2026-11-23T09:00:00+01:00')
  expect(sentenceOf({ every, anchor, ...BERLIN })).toBe(`${words}, counted from 2026-11-23 at 09:00, Europe/Berlin`)
})

test('an interval says how often it fires in all', () => {
  const spec = { every: 'PT15M', anchor: at('2026-12-01T00:00:00Z'), timezone: 'UTC' }
  expect(sentenceOf({ ...spec, count: 5 })).toBe('every 15 minutes, counted from 2026-12-01, 5 times, UTC')
  expect(sentenceOf({ ...spec, count: 1 })).toBe('every 15 minutes, counted from 2026-12-01, 1 time, UTC')
})

// – what can be read back –

const numbers = (min: number, max: number, most: number) =>
  fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: most }).map((list) => list.sort((a, b) => a - b))
const among = (...values: number[]) => fc.constantFrom(...values)
const span = (min: number, max: number) =>
  numbers(min, max, 2)
    .filter((list) => list.length === 2)
    .map(([from, to]) => `${from}-${to}`)

const times = fc.oneof(
  fc.tuple(numbers(0, 59, 2), numbers(0, 23, 3)).map(([minutes, hours]) => `${minutes} ${hours}`),
  among(1, 2, 5, 10, 15, 20, 30).map((step) => (step === 1 ? '* *' : `*/${step} *`)),
  fc.tuple(numbers(0, 59, 4), among(1, 2, 3, 4, 6, 8, 12)).map(([minutes, step]) => `${minutes} */${step}`),
  fc.tuple(fc.integer({ min: 0, max: 59 }), span(0, 23)).map(([minute, hours]) => `${minute} ${hours}`),
  fc.tuple(among(5, 10, 15, 30), span(0, 23)).map(([step, hours]) => `*/${step} ${hours}`),
  fc.tuple(among(2, 3, 4), fc.integer({ min: 0, max: 15 })).map(([step, from]) => `0 ${from}-${from + 8}/${step}`),
)

const months = fc.option(
  numbers(1, 12, 3).map((list) => list.join(',')),
  { nil: '*' },
)
const dates = fc.oneof(
  numbers(1, 31, 3).map((list) => list.join(',')),
  fc.constantFrom('L', 'LW', '1W', '1,L'),
)
const weekdays = fc.oneof(
  fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 5 }).map((list) => list.join(',')),
  fc.constantFrom('1-5', '5-7', '2-6'),
  fc.tuple(among(0, 1, 3, 5), among(1, 2, 3, 4, 5)).map(([day, nth]) => `${day}#${nth}`),
  fc.constantFrom('5L', '1#1,1#3', '0L'),
)
const days = fc.oneof(
  months.map((month) => `* ${month} *`),
  fc.tuple(dates, months).map(([date, month]) => `${date} ${month} *`),
  fc.tuple(months, weekdays).map(([month, weekday]) => `* ${month} ${weekday}`),
)
const crons = fc
  .tuple(times, days)
  .map(([time, day]) => canonicalCron(`${time} ${day}`))
  // A 31st of months that have none never fires, and is refused in English.
  .filter((cron) => !/ (\d+,)*(29|30|31)(,\d+)* \d[\d,]* \*$/.test(cron))

const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Antarctica/Troll')
/** Some seconds, some not; within four years, so that changes of clocks are met. */
const moments = fc.integer({ min: 1, max: 4 * 365 * 24 * 60 }).map((minutes) => NOW + minutes * 60_000)

function readBack(spec: ScheduleSpec): ScheduleSpec {
  const understood = readWhen(sentenceOf(spec), { now: NOW, timezone: spec.timezone })
  if (understood.kind !== 'recurring') throw new Error(`read as once: ${sentenceOf(spec)}`)
  return specOf(understood, spec.timezone) as ScheduleSpec
}

function expectSameTimes(spec: ScheduleSpec, other: ScheduleSpec): void {
  for (const from of [NOW, Date.UTC(2027, 2, 12), Date.UTC(2027, 9, 2), Date.UTC(2027, 9, 30)]) {
    expect(timesOf(other as never, from, 25), sentenceOf(spec)).toEqual(timesOf(spec as never, from, 25))
  }
}

test('sentences of the usual cron expressions, alone or several, are read back as schedules with the same times', () => {
  fc.assert(
    fc.property(fc.array(crons, { minLength: 1, maxLength: 3 }), zones, (list, timezone) => {
      const spec = { cron: list, timezone }
      // What is longer is no text for readWhen.
      if (sentenceOf(spec).length > 200) return
      expectSameTimes(spec, readBack(spec))
    }),
    { numRuns: 120 },
  )
})

test('so are those with bounds', () => {
  fc.assert(
    fc.property(crons, zones, moments, fc.integer({ min: 1, max: 400 * DAY }), (cron, timezone, startAt, length) => {
      const spec = { cron, timezone, startAt, endAt: startAt + length }
      if (sentenceOf(spec).length > 200) return
      const read = readBack(spec)
      expect(read).toMatchObject({ startAt, endAt: startAt + length })
      expectSameTimes(spec, read)
    }),
    { numRuns: 60 },
  )
})

test('sentences of intervals are read back as exactly the same schedule', () => {
  const units = fc.constantFrom('PT#S', 'PT#M', 'PT#H', 'P#D', 'P#M', 'P#Y')
  const intervals = fc.tuple(units, fc.integer({ min: 1, max: 59 }))
  const counts = fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined })
  fc.assert(
    fc.property(intervals, zones, moments, counts, ([unit, number], timezone, anchor, count) => {
      const every = unit.replace('#', String(number))
      const spec = { every: canonical(every), anchor, timezone, ...(count === undefined ? {} : { count }) }
      expect(readBack(spec)).toEqual(spec)
    }),
    { numRuns: 150 },
  )
})

/** 12 months are a year. */
function canonical(every: string): string {
  const months = /^P(\d+)M$/.exec(every)?.[1]
  if (months === undefined) return every
  const [years, rest] = [Math.floor(Number(months) / 12), Number(months) % 12]
  return `P${years > 0 ? `${years}Y` : ''}${rest > 0 ? `${rest}M` : ''}`
}

test('the sentence of one moment is read back as that moment', () => {
  fc.assert(
    fc.property(zones, fc.integer({ min: NOW, max: NOW + 9_000 * DAY }), (timezone, moment) => {
      const at = { now: NOW, timezone }
      expect(readWhen(sentenceOfOnce(moment, timezone), at)).toEqual({ kind: 'once', at: moment })
    }),
    { numRuns: 200 },
  )
})

test('one moment is said on the wall of its zone, and as an instant in the second pass of a repeated hour', () => {
  expect(sentenceOfOnce(at('2026-12-24T17:00:00Z'), 'Europe/Berlin')).toBe(
    'once, on Thursday 24 December 2026 at 18:00, Europe/Berlin',
  )
  expect(sentenceOfOnce(at('2026-10-25T00:30:00Z'), 'Europe/Berlin')).toBe(
    'once, on Sunday 25 October 2026 at 02:30, Europe/Berlin',
  )
  expect(sentenceOfOnce(at('2026-10-25T01:30:00Z'), 'Europe/Berlin')).toBe(
    'once, on 2026-10-25T01:30:00.000Z, Europe/Berlin',
  )
  expect(zoneOf('Europe/Berlin').localOf(at('2026-10-25T01:30:00Z'))).toBe(Date.UTC(2026, 9, 25, 2, 30))
})

test('every canonical expression has a sentence that names its zone', () => {
  const numeric = (min: number, max: number) =>
    fc.oneof(
      fc.constant('*'),
      fc.integer({ min, max }).map(String),
      fc.tuple(span(min, max), fc.integer({ min: 1, max: 6 })).map(([range, step]) => `${range}/${step}`),
      fc.integer({ min: 2, max: 12 }).map((step) => `*/${Math.min(step, max)}`),
      fc.constantFrom('H', `H(${min}-${max - 1})`, 'H/2'),
    )
  const field = (min: number, max: number, special: fc.Arbitrary<string>) =>
    fc.array(fc.oneof(numeric(min, max), special), { minLength: 1, maxLength: 3 }).map((items) => items.join(','))
  const none = fc.constant('*')
  const any = fc.tuple(
    field(0, 59, none),
    field(0, 59, none),
    field(0, 23, none),
    field(1, 31, fc.constantFrom('L', 'LW', '15W', 'L-2')),
    field(1, 12, none),
    field(0, 6, fc.constantFrom('5L', '1#2')),
  )
  fc.assert(
    fc.property(any, (fields) => {
      const sentence = sentenceOf({ cron: canonicalCron(fields.join(' ')), timezone: 'Asia/Tokyo' })
      expect(sentence).toMatch(/^(every|at) .*, Asia\/Tokyo$/)
      expect(sentence).not.toMatch(/undefined|NaN| {2}|[#*?]/)
    }),
    { numRuns: 500 },
  )
})
