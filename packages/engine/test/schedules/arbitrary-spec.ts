import fc from 'fast-check'
import type { DstPolicy, ResolvedExclusion, ResolvedSpec } from '../../src/job/definition.ts'
import type { Fields, LocalDate, NaiveExclusion, NaiveSchedule } from './naive-walker.ts'

/**
 * Random schedules, in two forms that were made side by side: what they mean, for the walker, and how it is written, for the
 * engine. So nothing that reads expressions is shared.
 */
export interface Written<Meaning> {
  text: string
  meaning: Meaning
}

const DAY = 86_400_000

function numbers(from: number, to: number, step = 1): Set<number> {
  const set = new Set<number>()
  for (let value = from; value <= to; value += step) set.add(value)
  return set
}

function values(min: number, max: number): fc.Arbitrary<Written<Set<number>> & { isFixed: boolean }> {
  const value = fc.integer({ min, max })
  const range = fc.tuple(value, value).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const)
  const step = fc.integer({ min: 2, max: Math.min(15, max) })
  const list = (most: number) =>
    fc
      .uniqueArray(value, { minLength: 1, maxLength: most })
      .map((all) => ({ text: all.join(','), meaning: new Set(all), isFixed: true }))
  return fc.oneof(
    { weight: 3, arbitrary: list(1) },
    { weight: 2, arbitrary: list(4) },
    {
      weight: 2,
      arbitrary: range.map(([from, to]) => ({
        text: `${from}-${to}`,
        meaning: numbers(from, to),
        isFixed: from === to,
      })),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(value, step).map(([from, by]) => ({
        text: `${from}/${by}`,
        meaning: numbers(from, max, by),
        isFixed: from === max,
      })),
    },
    {
      weight: 2,
      arbitrary: step.map((by) => ({ text: `*/${by}`, meaning: numbers(min, max, by), isFixed: false })),
    },
    { weight: 2, arbitrary: fc.constant({ text: '*', meaning: numbers(min, max), isFixed: false }) },
  )
}

type OnDate = (date: LocalDate) => boolean

function weekdayOn(date: LocalDate, day: number): number {
  return (((date.weekday + day - date.day) % 7) + 7) % 7
}

/** Monday to Friday of the same month, nearest to a day of it. */
function nearest(date: LocalDate, wanted: number): number {
  for (const day of [wanted, wanted - 1, wanted + 1, wanted - 2, wanted + 2]) {
    if (day < 1 || day > date.daysInMonth) continue
    if (weekdayOn(date, day) % 6 !== 0) return day
  }
  throw new Error('a week without weekdays')
}

const days: fc.Arbitrary<Written<OnDate>> = fc.oneof(
  {
    weight: 4,
    arbitrary: values(1, 31)
      .filter(({ text }) => text !== '*')
      .map(({ text, meaning }) => ({ text, meaning: ({ day }: LocalDate) => meaning.has(day) })),
  },
  fc.constant({ text: 'L', meaning: (date: LocalDate) => date.day === date.daysInMonth }),
  fc.integer({ min: 1, max: 27 }).map((before) => ({
    text: `L-${before}`,
    meaning: (date: LocalDate) => date.day === date.daysInMonth - before,
  })),
  fc.constant({
    text: 'LW',
    meaning: (date: LocalDate) => {
      let last = date.daysInMonth
      while (weekdayOn(date, last) % 6 === 0) last--
      return date.day === last
    },
  }),
  fc.integer({ min: 1, max: 28 }).map((wanted) => ({
    text: `${wanted}W`,
    meaning: (date: LocalDate) => date.day === nearest(date, wanted),
  })),
)

const weekdays: fc.Arbitrary<Written<OnDate>> = fc.oneof(
  {
    weight: 4,
    arbitrary: values(0, 6)
      .filter(({ text }) => !/^\d\/|^\*$/.test(text))
      .map(({ text, meaning }) => ({ text, meaning: ({ weekday }: LocalDate) => meaning.has(weekday) })),
  },
  fc.tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 1, max: 5 })).map(([weekday, nth]) => ({
    text: `${weekday}#${nth}`,
    meaning: (date: LocalDate) => date.weekday === weekday && Math.ceil(date.day / 7) === nth,
  })),
  fc.integer({ min: 0, max: 6 }).map((weekday) => ({
    text: `${weekday}L`,
    meaning: (date: LocalDate) => date.weekday === weekday && date.day + 7 > date.daysInMonth,
  })),
)

const ZERO = { text: '', meaning: new Set([0]) }

function crons(hours = values(0, 23), minutes = values(0, 59)): fc.Arbitrary<Written<Fields>> {
  return fc
    .record({
      minute: minutes,
      hour: hours,
      day: fc.option(days, { freq: 2 }),
      month: fc.option(values(1, 12), { freq: 1 }),
      weekday: fc.option(weekdays, { freq: 2 }),
    })
    .map((fields) => written({ ...fields, second: ZERO }))
}

function written(fields: {
  second: Written<Set<number>>
  minute: Written<Set<number>>
  hour: Written<Set<number>> & { isFixed: boolean }
  day: Written<OnDate> | null
  month: Written<Set<number>> | null
  weekday: Written<OnDate> | null
}): Written<Fields> {
  const { second, minute, hour, day, month, weekday } = fields
  const texts = [minute, hour, day, month, weekday].map((part) => part?.text ?? '*')
  return {
    text: [...(second.text === '' ? [] : [second.text]), ...texts].join(' '),
    meaning: {
      seconds: second.meaning,
      minutes: minute.meaning,
      hours: hour.meaning,
      months: month?.meaning ?? numbers(1, 12),
      day: day?.meaning ?? null,
      weekday: weekday?.meaning ?? null,
      isFixed: hour.isFixed,
    },
  }
}

/** Mostly in the hours in which clocks change. */
const nightHours = fc.oneof(
  { weight: 2, arbitrary: values(0, 23) },
  {
    weight: 1,
    arbitrary: fc
      .uniqueArray(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 3 })
      .map((all) => ({ text: all.join(','), meaning: new Set(all), isFixed: true })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { text: '0', meaning: new Set([0]), isFixed: true },
      { text: '23,0', meaning: new Set([23, 0]), isFixed: true },
      { text: '1-3', meaning: new Set([1, 2, 3]), isFixed: false },
    ),
  },
)

const fewMinutes = fc.uniqueArray(fc.integer({ min: 0, max: 59 }), { minLength: 1, maxLength: 2 }).map((all) => ({
  text: all.join(','),
  meaning: new Set(all),
  isFixed: true,
}))
const fewHours = fc.uniqueArray(fc.integer({ min: 0, max: 23 }), { minLength: 1, maxLength: 4 }).map((all) => ({
  text: all.join(','),
  meaning: new Set(all),
  isFixed: true,
}))

const dst: fc.Arbitrary<DstPolicy> = fc
  .record({
    gap: fc.option(fc.constantFrom('after' as const, 'skip' as const), { nil: undefined }),
    overlap: fc.option(fc.constantFrom('first' as const, 'last' as const, 'both' as const), { nil: undefined }),
  })
  .map(({ gap, overlap }) => ({ ...(gap && { gap }), ...(overlap && { overlap }) }))

interface BothExclusions {
  resolved: ResolvedExclusion
  naive: NaiveExclusion
}

function dateText(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

function exclusions(centre: number): fc.Arbitrary<BothExclusions> {
  const near = fc.integer({ min: -3, max: 3 }).map((offset) => dateText(centre + offset * DAY))
  return fc.oneof(
    near.map((date) => ({
      resolved: { date },
      naive: { kind: 'days' as const, has: (one: string) => one === date },
    })),
    fc.tuple(near, near).map(([one, other]) => {
      const [from, to] = one < other ? [one, other] : [other, one]
      return {
        resolved: { from, to },
        naive: { kind: 'days' as const, has: (date: string) => from <= date && date <= to },
      }
    }),
    fc
      .record({
        days: fc.uniqueArray(near, { maxLength: 3 }),
        weekend: fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { maxLength: 2 }),
      })
      .map(({ days: list, weekend }) => ({
        resolved: { days: list, weekend },
        naive: {
          kind: 'days' as const,
          has: (date: string, weekday: number) => list.includes(date) || weekend.includes(weekday),
        },
      })),
    fc.tuple(fc.integer({ min: -1_440, max: 1_440 }), fc.integer({ min: 1, max: 600 })).map(([minute, length]) => {
      const from = centre + minute * 60_000
      const to = from + length * 60_000
      return { resolved: { fromAt: from, toAt: to }, naive: { kind: 'instants' as const, from, to } }
    }),
    crons().map(({ text, meaning }) => ({
      resolved: { cron: text },
      naive: { kind: 'times' as const, fields: { ...meaning, seconds: numbers(0, 59) } },
    })),
  )
}

export interface BothForms {
  spec: ResolvedSpec
  naive: NaiveSchedule
}

/** Cron schedules that have something to do around an instant. */
export function cronSpecs(timezone: string, centre: number): fc.Arbitrary<BothForms> {
  return fc
    .record({
      cron: fc.oneof(
        { weight: 3, arbitrary: crons(nightHours).map((one) => [one]) },
        { weight: 1, arbitrary: fc.array(crons(nightHours), { minLength: 2, maxLength: 3 }) },
      ),
      fewer: fc.array(crons(fewHours, fewMinutes), { minLength: 1, maxLength: 2 }),
      dst: fc.option(dst, { nil: {}, freq: 1 }),
      exclude: fc.oneof(
        { weight: 2, arbitrary: fc.constant<BothExclusions[]>([]) },
        { weight: 1, arbitrary: fc.array(exclusions(centre), { minLength: 1, maxLength: 3 }) },
      ),
      moves: fc.boolean(),
      bounds: fc.option(
        fc.record({
          startAt: fc.integer({ min: centre - DAY, max: centre }),
          endAt: fc.integer({ min: centre + 1, max: centre + DAY }),
        }),
        { nil: null, freq: 1 },
      ),
    })
    .map(({ cron, fewer, dst: policy, exclude, moves, bounds }) => {
      const isMoving = moves && exclude.some(({ naive }) => naive.kind === 'days')
      const list = isMoving ? fewer : cron
      const [first, second] = list.map(({ text }) => text)
      const spec: ResolvedSpec = {
        cron: second === undefined ? (first as string) : list.map(({ text }) => text),
        timezone,
        ...(Object.keys(policy).length > 0 && { dst: policy }),
        ...(exclude.length > 0 && { exclude: exclude.map(({ resolved }) => resolved) }),
        ...(isMoving && { onExcluded: 'next_business_day' as const }),
        ...bounds,
      }
      const naive: NaiveSchedule = {
        fields: list.map(({ meaning }) => meaning),
        dst: policy,
        exclude: exclude.map((one) => one.naive),
        moves: isMoving,
        startAt: bounds?.startAt ?? Number.NEGATIVE_INFINITY,
        endAt: bounds?.endAt ?? Number.POSITIVE_INFINITY,
      }
      return { spec, naive }
    })
}

/** One expression with seconds. */
export const cronsWithSeconds: fc.Arbitrary<Written<Fields>> = fc
  .record({
    second: values(0, 59),
    minute: values(0, 59),
    hour: values(0, 23),
    day: fc.constant(null),
    month: fc.constant(null),
    weekday: fc.option(weekdays, { freq: 1 }),
  })
  .map(written)
