import { Cron } from 'croner'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileSchedule } from '../../src/schedule/compile-schedule.ts'
import { CronPattern } from '../../src/schedule/cron-pattern.ts'
import { canonicalCron } from '../../src/schedule/cron-text.ts'
import { localTimeOf } from '../../src/schedule/local-time.ts'
import { cronSpecs } from './arbitrary-spec.ts'

/** The classes of differences that docs/reference/schedules.md lists under "Where others differ"; there are no others. */
type Difference = 'day before the last' | 'first of a month' | 'skipped time' | 'repeated time'

const TIMES = 12
const SEED = Number(process.env.BELFRY_SCHEDULE_SEED ?? 1)
const iso = (at: number) => new Date(at).toISOString()

function timesOf(next: (after: number) => number | null, after: number): number[] {
  const times: number[] = []
  for (let at = next(after); at !== null && times.length < TIMES; at = next(at)) times.push(at)
  return times
}

function cronerOf(cron: string, timezone: string): (after: number) => number | null {
  const compiled = new Cron(cron, { timezone, paused: true, mode: '5-or-6-parts' })
  return (after) => compiled.nextRun(new Date(after))?.getTime() ?? null
}

/** The times that only one of the two has, up to where both have been asked. */
function differences(cron: string, timezone: string, after: number): { ours: number[]; theirs: number[] } {
  const schedule = compileSchedule({ cron, timezone })
  const ours = timesOf((at) => schedule.next(at), after)
  const theirs = timesOf(cronerOf(cron, timezone), after)
  const until = Math.min(ours.at(-1) as number, theirs.at(-1) as number)
  return {
    ours: ours.filter((at) => at <= until && !theirs.includes(at)),
    theirs: theirs.filter((at) => at <= until && !ours.includes(at)),
  }
}

const hasFixedHours = (cron: string) => /^[\d,]+$/.test(cron.split(' ').at(-4) as string)

/** Days that some months do not have. */
function hasLateDays(cron: string): boolean {
  const days = cron.split(' ').at(-3) as string
  return days !== '*' && new CronPattern(`0 0 ${days} * *`).daysIn(2026, 1) >= 1 << 28
}

function classOfOurs(cron: string, timezone: string, at: number): Difference | undefined {
  const spec = { cron, timezone }
  const { local, dst } = localTimeOf(spec, at)
  if (dst === 'gap' && hasFixedHours(cron)) return 'skipped time'
  const isEarly = Number(local.slice(8, 10)) <= 3
  return isEarly && (hasLateDays(cron) || local.slice(5, 7) === '03') ? 'first of a month' : undefined
}

function classOfTheirs(cron: string, timezone: string, at: number): Difference | undefined {
  return localTimeOf({ cron, timezone }, at).dst === 'repeat' && hasFixedHours(cron) ? 'repeated time' : undefined
}

const places: [string, string][] = [
  ['UTC', '2026-01-30T00:00:00Z'],
  ['UTC', '2028-02-27T00:00:00Z'],
  ['Asia/Kolkata', '2026-06-01T00:00:00Z'],
  ['Europe/Berlin', '2026-03-28T22:00:00Z'],
  ['Europe/Berlin', '2026-10-24T22:00:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T12:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T12:00:00Z'],
  ['America/Havana', '2026-03-08T03:00:00Z'],
  ['America/Havana', '2026-11-01T03:00:00Z'],
]

test.each(places)('in %s from %s on there is no difference to croner but the known ones', (timezone, start) => {
  const after = Date.parse(start)
  const expressions = fc
    .sample(cronSpecs(timezone, after), { numRuns: 120, seed: SEED })
    .map(({ spec }) => ('cron' in spec ? spec.cron : ''))
  for (const cron of new Set(expressions.flat().map(canonicalCron))) {
    // croner does not read L-3.
    if (cron.includes('L-')) continue
    try {
      compileSchedule({ cron, timezone })
    } catch {
      expect(cronerOf(cron, timezone)(after), `${cron} fires after all`).toBeNull()
      continue
    }
    const { ours, theirs } = differences(cron, timezone, after)
    const unknown = [
      ...ours.filter((at) => classOfOurs(cron, timezone, at) === undefined).map((at) => `only ours: ${iso(at)}`),
      ...theirs.filter((at) => classOfTheirs(cron, timezone, at) === undefined).map((at) => `only theirs: ${iso(at)}`),
    ]
    expect(unknown, `${cron} in ${timezone}`).toEqual([])
  }
})

test.each<[Difference, string, string, string, { ours: string[]; theirs: string[] }]>([
  [
    'first of a month',
    '0 0 */15 * *',
    'UTC',
    '2026-02-10T00:00:00Z',
    { ours: ['2026-03-01T00:00:00.000Z'], theirs: [] },
  ],
  [
    'skipped time',
    '0,30 2 * * *',
    'Europe/Berlin',
    '2026-03-28T12:00:00Z',
    { ours: ['2026-03-29T01:00:00.000Z'], theirs: [] },
  ],
  [
    'repeated time',
    '30 2,14 * * *',
    'Europe/Berlin',
    '2026-10-24T12:00:00Z',
    { ours: [], theirs: ['2026-10-25T01:30:00.000Z'] },
  ],
])('the documented difference "%s" is there: %s', (_class, cron, timezone, start, expected) => {
  const { ours, theirs } = differences(cron, timezone, Date.parse(start))
  expect({ ours: ours.map(iso).slice(0, 1), theirs: theirs.map(iso).slice(0, 1) }).toEqual(expected)
})

test('the documented difference "day before the last" is there: croner refuses L-3', () => {
  expect(() => cronerOf('0 0 L-3 * *', 'UTC')).toThrow()
  expect(compileSchedule({ cron: '0 0 L-3 * *', timezone: 'UTC' }).next(Date.UTC(2026, 1, 1))).toBe(
    Date.UTC(2026, 1, 25),
  )
})
