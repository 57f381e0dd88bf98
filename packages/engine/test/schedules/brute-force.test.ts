import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ResolvedSpec } from '../../src/job/definition.ts'
import { compileSchedule } from '../../src/schedule/compile-schedule.ts'
import type { Schedule } from '../../src/schedule/schedule.ts'
import { type BothForms, cronSpecs, cronsWithSeconds } from './arbitrary-spec.ts'
import { instantOf, type NaiveFire, naiveFires, readWall, readWalls, type Walls } from './naive-walker.ts'

/**
 * `BELFRY_SCHEDULE_CASES=all` tries every zone in every year from 2020 to 2037, around each change of its clocks; a number
 * tries that many pairs of zone and year. `BELFRY_SCHEDULE_SEED` repeats what failed.
 */
const asked = process.env.BELFRY_SCHEDULE_CASES ?? '40'
const seed = Number(process.env.BELFRY_SCHEDULE_SEED ?? Math.floor(Math.random() * 2 ** 31))

const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** The whole set has about 9,000 windows. */
const SPECS_PER_WINDOW = asked === 'all' ? 6 : 30

interface Window {
  zone: string
  centre: number
}

const everyPair = Intl.supportedValuesOf('timeZone').flatMap((zone) =>
  Array.from({ length: 18 }, (_, index) => ({ zone, year: 2020 + index })),
)
const pairs = asked === 'all' ? everyPair : fc.sample(fc.constantFrom(...everyPair), { seed, numRuns: Number(asked) })

/** Around each change of the clocks, or some other time of the year if there is none. */
function windowsOf({ zone, year }: { zone: string; year: number }): Window[] {
  const windows: Window[] = []
  const begin = Date.UTC(year, 0, 1)
  let offset = readWall(zone, begin) - begin
  for (let at = begin; at < Date.UTC(year + 1, 0, 1); at += 6 * HOUR) {
    const now = readWall(zone, at) - at
    if (now !== offset) windows.push({ zone, centre: at })
    offset = now
  }
  return windows.length > 0 ? windows : [{ zone, centre: begin + ((year * 7_919) % 350) * DAY }]
}

/** From when on the walker sees everything that moves: after the first whole day that nothing leaves out. */
function trustedFrom({ naive }: BothForms, walls: Walls): number | null {
  const isExcluded = (local: number) => {
    const date = new Date(local)
    return naive.exclude.some(
      (one) => one.kind === 'days' && one.has(date.toISOString().slice(0, 10), date.getUTCDay()),
    )
  }
  const first = walls.from + (naive.moves ? 3 : 40) * HOUR
  if (!naive.moves) return first
  for (let at = first; at < first + 1.5 * DAY; at += HOUR) {
    const local = walls.locals[(at - walls.from) / walls.step] as number
    if (!isExcluded(local)) return at + 26 * HOUR
  }
  return null
}

/** Plain comparisons first: a million calls of `expect` would take most of the time. */
function expectSame(
  schedule: Schedule,
  fires: readonly number[],
  from: number,
  until: number,
  what: () => string,
): void {
  const expected = fires.filter((fire) => fire > from && fire <= until)
  const found: number[] = []
  for (let fire = schedule.next(from); fire !== null && fire <= until; fire = schedule.next(fire)) {
    found.push(fire)
    if (found.length > expected.length + 5) break
  }
  if (found.length !== expected.length || found.some((fire, index) => fire !== expected[index])) {
    expect(found.map(iso), what()).toEqual(expected.map(iso))
  }
  // Where all is left out, each question is a search through a century.
  const questions = expected.length === 0 ? 3 : 24
  for (let i = 0; i < questions; i++) {
    const near = expected[(i * 7) % Math.max(1, expected.length)]
    const spread = from + Math.floor((until - from) * ((i * 0.618) % 1))
    const at = i % 2 === 0 && near !== undefined ? near + ((i % 3) - 1) : spread
    if (at <= from || at > until) continue
    const latest = expected.findLast((fire) => fire <= at) ?? null
    if (schedule.latest(at, from) !== latest) {
      expect(schedule.latest(at, from), `latest at ${iso(at)} of ${what()}`).toBe(latest)
    }
    const next = expected.find((fire) => fire > at)
    if (next !== undefined && schedule.next(at) !== next) {
      expect(schedule.next(at), `next after ${iso(at)} of ${what()}`).toBe(next)
    }
    const end = Math.min(until, at + (i + 1) * HOUR)
    const count = Math.min(30, expected.filter((fire) => fire > at && fire <= end).length)
    if (schedule.count(at, end, 30) !== count) {
      expect(schedule.count(at, end, 30), `count from ${iso(at)} to ${iso(end)} of ${what()}`).toBe(count)
    }
  }
}

const iso = (at: number) => new Date(at).toISOString()

/** Expressions that never fire are refused; the walker must not find anything then either. */
function compiled(both: BothForms, fires: readonly number[], what: () => string): Schedule | null {
  try {
    return compileSchedule(both.spec)
  } catch (error) {
    expect((error as Error).message, what()).toContain('never fires')
    if (typeof (both.spec as { cron: unknown }).cron === 'string') expect(fires, what()).toEqual([])
    return null
  }
}

test('crons fire exactly when a walk over the wall clock says, whatever the clocks do', { timeout: 3_600_000 }, () => {
  let cases = 0
  for (const pair of pairs) {
    for (const { zone, centre } of windowsOf(pair)) {
      const walls = readWalls(zone, centre - 3 * DAY, centre + 1.5 * DAY, MINUTE)
      const until = centre + DAY - 1
      for (const both of fc.sample(cronSpecs(zone, centre), { seed: seed + cases, numRuns: SPECS_PER_WINDOW })) {
        const what = () => `${JSON.stringify(both.spec)} near ${iso(centre)} (seed ${seed})`
        const from = trustedFrom(both, walls)
        if (from === null) continue
        const fires = naiveFires(both.naive, walls)
        const schedule = compiled(both, fires, what)
        if (schedule !== null) expectSame(schedule, fires, from, until, what)
        cases++
      }
    }
  }
  if (process.env.BELFRY_SCHEDULE_CASES) console.log(`${cases} schedules in ${pairs.length} pairs of zone and year`)
  expect(cases).toBeGreaterThan(pairs.length)
})

test('crons with seconds do so too', () => {
  const zones = ['Europe/Berlin', 'Australia/Lord_Howe', 'Antarctica/Troll', 'Africa/Monrovia', 'UTC']
  const centres: Record<string, string> = {
    'Europe/Berlin': '2026-10-25T01:00:00Z',
    'Australia/Lord_Howe': '2026-10-03T15:30:00Z',
    'Antarctica/Troll': '2026-03-29T01:00:00Z',
    // Until 1972 its clocks were 44 minutes and 30 seconds behind.
    'Africa/Monrovia': '1972-01-07T00:44:30Z',
    UTC: '2028-02-29T00:00:00Z',
  }
  for (const zone of zones) {
    const centre = Date.parse(centres[zone] as string)
    const walls = readWalls(zone, centre - 150 * MINUTE, centre + 150 * MINUTE, SECOND)
    for (const { text, meaning } of fc.sample(cronsWithSeconds, { seed, numRuns: 12 })) {
      const what = () => `${text} in ${zone} (seed ${seed})`
      const naive = {
        fields: [meaning],
        dst: {},
        exclude: [],
        moves: false,
        startAt: Number.NEGATIVE_INFINITY,
        endAt: Number.POSITIVE_INFINITY,
      }
      const fires = naiveFires(naive, walls)
      const schedule = compileSchedule({ cron: text, timezone: zone })
      expectSame(schedule, fires, centre - 20 * MINUTE, centre + 20 * MINUTE, what)
    }
  }
})

/** In steps of whole minutes; days are counted on the wall. */
function intervalTimes(every: string, anchor: number, walls: Walls): NaiveFire[] {
  const end = walls.from + walls.locals.length * walls.step
  const times: NaiveFire[] = []
  if (every === 'P1D') {
    const local = walls.locals[(anchor - walls.from) / walls.step] as number
    for (let day = 0; day < 10; day++) {
      const meant = local + day * DAY
      times.push({ instant: instantOf(walls, meant) ?? end, meant })
    }
  } else {
    const minutes = Number(every.slice(2, -1))
    for (let instant = anchor; instant < end; instant += minutes * MINUTE) {
      times.push({ instant, meant: walls.locals[(instant - walls.from) / walls.step] as number })
    }
  }
  return times.filter(({ instant }) => instant < end)
}

test('intervals leave out and move what they say', () => {
  const places: [string, string][] = [
    ['Europe/Berlin', '2026-03-29T01:00:00Z'],
    ['Europe/Berlin', '2026-10-25T01:00:00Z'],
    ['America/Havana', '2026-03-08T05:00:00Z'],
    ['Asia/Kolkata', '2026-06-03T00:00:00Z'],
  ]
  for (const [zone, text] of places) {
    const centre = Date.parse(text)
    const walls = readWalls(zone, centre - 3 * DAY, centre + 1.5 * DAY, MINUTE)
    const cases = fc.record({
      both: cronSpecs(zone, centre).filter(({ spec }) => spec.exclude !== undefined),
      every: fc.constantFrom('PT7M', 'PT45M', 'PT60M', 'PT90M', 'P1D'),
      anchorMinute: fc.integer({ min: 0, max: 600 }),
    })
    for (const { both, every, anchorMinute } of fc.sample(cases, { seed, numRuns: 60 })) {
      const { exclude = [] } = both.spec
      // The walls must show where the excluded days before the first time end.
      const anchor = walls.from + anchorMinute * MINUTE
      const moves = both.naive.moves && every !== 'PT7M' && every !== 'PT45M'
      const spec: ResolvedSpec = {
        every,
        timezone: zone,
        anchor,
        exclude,
        ...(moves && { onExcluded: 'next_business_day' }),
      }
      const naive = { ...both.naive, fields: [], moves, startAt: anchor, endAt: Number.POSITIVE_INFINITY }
      const fires = naiveFires(naive, walls, intervalTimes(every, anchor, walls))
      const what = () => `${JSON.stringify(spec)} near ${text} (seed ${seed})`
      expectSame(compileSchedule(spec), fires, walls.from, centre + DAY - 1, what)
    }
  }
})
