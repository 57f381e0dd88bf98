import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileSchedule } from './compile-schedule.ts'

const MINUTE = 60_000
const DAY = 1_440 * MINUTE
const at = (text: string) => Date.parse(text)

/** What is drawn first are the sets; the expression is only their spelling, so the walker shares nothing with a parser. */
interface Sets {
  minutes: Set<number>
  hours: Set<number>
  days: Set<number> | null
  months: Set<number> | null
  weekdays: Set<number> | null
}

function field(min: number, max: number): fc.Arbitrary<{ text: string; set: Set<number> }> {
  const numbers = (from: number, to: number, step: number) => {
    const set = new Set<number>()
    for (let value = from; value <= to; value += step) set.add(value)
    return set
  }
  const value = fc.integer({ min, max })
  return fc.oneof(
    fc.uniqueArray(value, { minLength: 1, maxLength: 4 }).map((list) => ({ text: list.join(','), set: new Set(list) })),
    fc.tuple(value, value).map(([a, b]) => {
      const [from, to] = a < b ? [a, b] : [b, a]
      return { text: `${from}-${to}`, set: numbers(from, to, 1) }
    }),
    fc.tuple(value, fc.integer({ min: 2, max: Math.min(15, max) })).map(([from, step]) => ({
      text: `${from}/${step}`,
      set: numbers(from, max, step),
    })),
  )
}

const star = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { freq: 2 })

const crons = fc
  .record({
    minute: field(0, 59),
    hour: field(0, 23),
    day: star(field(1, 31)),
    month: fc.option(field(1, 12), { freq: 1 }),
    weekday: star(field(0, 6).filter(({ text }) => !text.includes('/'))),
  })
  .map(({ minute, hour, day, month, weekday }) => ({
    text: [minute, hour, day, month, weekday].map((part) => part?.text ?? '*').join(' '),
    sets: {
      minutes: minute.set,
      hours: hour.set,
      days: day?.set ?? null,
      months: month?.set ?? null,
      weekdays: weekday?.set ?? null,
    } satisfies Sets,
  }))

function matches(sets: Sets, local: Date): boolean {
  const { minutes, hours, days, months, weekdays } = sets
  if (!minutes.has(local.getUTCMinutes()) || !hours.has(local.getUTCHours())) return false
  if (months !== null && !months.has(local.getUTCMonth() + 1)) return false
  const dayMatches = days?.has(local.getUTCDate())
  const weekdayMatches = weekdays?.has(local.getUTCDay())
  if (dayMatches === undefined) return weekdayMatches ?? true
  return weekdayMatches === undefined ? dayMatches : dayMatches || weekdayMatches
}

/** Tries every minute. */
function walk(sets: Sets, offsetMinutes: number, after: number, until: number): number[] {
  const fires: number[] = []
  const first = Math.floor(after / MINUTE) * MINUTE + MINUTE
  for (let minute = first; minute <= until; minute += MINUTE) {
    if (matches(sets, new Date(minute + offsetMinutes * MINUTE))) fires.push(minute)
  }
  return fires
}

test.each([
  ['UTC', 0],
  ['Asia/Kolkata', 330],
  ['America/Bogota', -300],
])('in %s a cron fires exactly in the minutes that match it', (timezone, offset) => {
  fc.assert(
    fc.property(crons, fc.integer({ min: at('2024-01-01'), max: at('2029-01-01') }), ({ text, sets }, after) => {
      const until = after + 40 * DAY
      const expected = walk(sets, offset, after, until)
      let schedule: ReturnType<typeof compileSchedule>
      try {
        schedule = compileSchedule({ cron: text, timezone })
      } catch (error) {
        expect((error as Error).message).toContain('never fires')
        expect(expected).toEqual([])
        return
      }
      let last = after
      for (const fire of expected.slice(0, 10)) {
        expect(schedule.next(last)).toBe(fire)
        last = fire
      }
      if (expected.length === 0) expect(schedule.next(after) ?? until + 1).toBeGreaterThan(until)
      expect(schedule.latest(until, after)).toBe(expected.at(-1) ?? null)
      const middle = after + 20 * DAY + 12_345
      expect(schedule.latest(middle, after)).toBe(expected.filter((fire) => fire <= middle).at(-1) ?? null)
      expect(schedule.count(after, until, 7)).toBe(Math.min(7, expected.length))
    }),
    { numRuns: 60 },
  )
})

test('six fields fire on seconds', () => {
  const schedule = compileSchedule({ cron: '*/20 * * * * *', timezone: 'UTC' })
  expect(schedule.next(at('2026-01-15T10:00:00Z'))).toBe(at('2026-01-15T10:00:20Z'))
  expect(schedule.next(at('2026-01-15T10:00:19.999Z'))).toBe(at('2026-01-15T10:00:20Z'))
  expect(schedule.next(at('2026-01-15T10:00:40.001Z'))).toBe(at('2026-01-15T10:01:00Z'))
  expect(schedule.latest(at('2026-01-15T10:00:59.999Z'), 0)).toBe(at('2026-01-15T10:00:40Z'))
})

test.each([
  ['0 0 L * *', '2026-02-28T00:00:00Z'],
  ['0 0 LW * *', '2026-02-27T00:00:00Z'],
  ['0 0 15W * *', '2026-02-16T00:00:00Z'],
  ['0 0 * * 5#2', '2026-02-13T00:00:00Z'],
  ['0 0 * * 5L', '2026-02-27T00:00:00Z'],
  ['0 0 13 * 5', '2026-02-06T00:00:00Z'],
  ['0 0 29 2 *', '2028-02-29T00:00:00Z'],
])('%s fires next at %s', (cron, expected) => {
  expect(compileSchedule({ cron, timezone: 'UTC' }).next(at('2026-01-31T12:00:00Z'))).toBe(at(expected))
})

test.each(['0 0 30 2 *', '0 0 31 4,6,9,11 *', '0 0 30W 2 *'])('%s never fires and is refused', (cron) => {
  expect(() => compileSchedule({ cron, timezone: 'UTC' })).toThrow('never fires')
})

test('nothing fires before startAt, nor at or after endAt', () => {
  const schedule = compileSchedule({
    cron: '0 * * * *',
    timezone: 'UTC',
    startAt: at('2026-01-15T10:00:00Z'),
    endAt: at('2026-01-15T12:00:00Z'),
  })
  expect(schedule.next(0)).toBe(at('2026-01-15T10:00:00Z'))
  expect(schedule.next(at('2026-01-15T10:00:00Z'))).toBe(at('2026-01-15T11:00:00Z'))
  expect(schedule.next(at('2026-01-15T11:00:00Z'))).toBeNull()
  expect(schedule.latest(at('2030-01-01T00:00:00Z'), 0)).toBe(at('2026-01-15T11:00:00Z'))
  expect(schedule.latest(at('2026-01-15T09:59:59Z'), 0)).toBeNull()
  expect(schedule.count(0, at('2030-01-01T00:00:00Z'), 100)).toBe(2)
})

test('a schedule is asked about the end of time without harm', () => {
  const schedule = compileSchedule({ cron: '0 0 29 2 *', timezone: 'Europe/Berlin' })
  for (const after of [-8.64e15, -1, 8.64e15, Number.MAX_SAFE_INTEGER]) {
    const fire = schedule.next(after)
    expect(fire === null || fire > after).toBe(true)
  }
  expect(schedule.latest(at('2026-01-01T00:00:00Z'), 0)).toBe(at('2024-02-28T23:00:00Z'))
})

test.each([
  ['Europe/Berlin', '2026-03-29', '2026-10-25'],
  ['America/New_York', '2026-03-08', '2026-11-01'],
  ['Australia/Lord_Howe', '2026-04-05', '2026-10-04'],
  ['Africa/Casablanca', '2026-02-15', '2026-03-22'],
])('in %s the answers agree with one another while the clocks change', (timezone, ...days) => {
  for (const cron of ['*/30 * * * *', '30 2 * * *', '0 0,1,2,3 * * *', '15 1-3 * * *', '*/20 2 * * *']) {
    const schedule = compileSchedule({ cron, timezone })
    for (const day of days) {
      const start = at(day) - DAY
      const fires: number[] = []
      for (let fire = schedule.next(start); fire !== null && fire <= start + 4 * DAY; fire = schedule.next(fire)) {
        // Strictly: a fire time that led back to itself would be an endless loop.
        if (fire <= (fires.at(-1) ?? start)) expect.unreachable(`${cron} stands still on ${day}`)
        fires.push(fire)
      }
      for (let instant = start; instant < start + 3 * DAY; instant += 85 * MINUTE) {
        expect(schedule.next(instant)).toBe(fires.find((fire) => fire > instant))
        expect(schedule.latest(instant, start)).toBe(fires.filter((fire) => fire <= instant).at(-1) ?? null)
      }
    }
  }
})

test.each([{ cron: '30 2 * * *' }, { every: 'P1D', anchor: at('2027-03-20T01:30:00Z') }])(
  'a time that the clocks skip on an excluded day moves as what was meant: $cron$every',
  (rhythm) => {
    const schedule = compileSchedule({
      ...rhythm,
      timezone: 'Europe/Berlin',
      exclude: [{ days: [], weekend: [0, 6] }],
      onExcluded: 'next_business_day',
    })
    // Monday at 02:30, for Saturday, for Sunday (when 02:30 is left out) and for itself: once.
    expect(schedule.next(at('2027-03-26T12:00:00Z'))).toBe(at('2027-03-29T00:30:00Z'))
    expect(schedule.next(at('2027-03-29T00:30:00Z'))).toBe(at('2027-03-30T00:30:00Z'))
    expect(schedule.latest(at('2027-03-29T22:00:00Z'), 0)).toBe(at('2027-03-29T00:30:00Z'))
  },
)
