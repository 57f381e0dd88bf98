import { type Bits, countBits, countOfSixty, type SixtyBits, sixtyBits } from './bits.ts'
import { dayOf, daysInMonth, weekdayOf } from './calendar-day.ts'
import { type CronField, cronFields, readRange } from './cron-field.ts'
import { hasHashes } from './hashed-field.ts'
import { notUnderstood, shown } from './not-understood.ts'

const ALL_WEEKDAYS: Bits = 0b111_1111
/** The days of a month that fall on the weekday of its first. */
const EVERY_SEVENTH: Bits = (1 << 0) | (1 << 7) | (1 << 14) | (1 << 21) | (1 << 28)
const SATURDAY = 6

/**
 * A canonical cron expression as sets of numbers. What matches is a day and a time of day, independently: the days of a
 * month are a mask (bit 0 is the 1st), the times of a day all combinations of hours, minutes and seconds.
 *
 * Where both day fields are restricted, a day that matches either matches. Only `*` and `?` do not restrict: a step such as
 * `1-31/2` does, however it is written.
 */
export class CronPattern {
  readonly text: string
  readonly seconds: SixtyBits
  readonly minutes: SixtyBits
  readonly hours: Bits
  /** Whether the hours are a number or a list of numbers: then a time that the clocks skip or repeat is meant once. */
  readonly hasFixedHours: boolean
  /** Bit 1 is January. */
  readonly months: Bits
  readonly #days: MonthDays | null
  readonly #weekdays: Weekdays | null

  /** Throws for a text that `canonicalCron` did not write. */
  constructor(text: string) {
    if (hasHashes(text)) throw notUnderstood(`${shown(text)} has an H, which has no number without a job`)
    const parts = text.split(' ')
    const fields = cronFields(parts.length)
    if (fields === undefined) throw notUnderstood(`${shown(text)} is not a cron expression in its canonical form`)
    const [days, month, weekday] = parts.slice(-3) as [string, string, string]
    const values = (fromEnd: number) => valuesOf(parts.at(-fromEnd) as string, fields.at(-fromEnd) as CronField)
    this.text = text
    this.seconds = parts.length === 6 ? sixtyBits(values(6)) : { low: 1, high: 0 }
    this.minutes = sixtyBits(values(5))
    this.hours = bitsOf(values(4))
    this.hasFixedHours = /^[\d,]+$/.test(parts.at(-4) as string)
    this.months = bitsOf(valuesOf(month, fields.at(-2) as CronField))
    this.#days = days === '*' ? null : monthDaysOf(days, fields.at(-3) as CronField)
    this.#weekdays = weekday === '*' ? null : weekdaysOf(weekday, fields.at(-1) as CronField)
  }

  /** The days of a month that match; bit 0 is the 1st. */
  daysIn(year: number, month: number): Bits {
    if (((this.months >>> month) & 1) === 0) return 0
    const length = daysInMonth(year, month)
    const all = 0x7fff_ffff >>> (31 - length)
    if (this.#days === null && this.#weekdays === null) return all
    const firstWeekday = weekdayOf(dayOf(year, month, 1))
    let mask = 0
    if (this.#days !== null) mask |= matchingDays(this.#days, length, firstWeekday)
    if (this.#weekdays !== null) mask |= matchingWeekdays(this.#weekdays, length, firstWeekday)
    return mask & all
  }

  get timesPerDay(): number {
    return countBits(this.hours) * countOfSixty(this.minutes) * countOfSixty(this.seconds)
  }
}

function bitsOf(values: Iterable<number>): Bits {
  let bits = 0
  for (const value of values) bits |= 1 << value
  return bits
}

function* valuesOf(text: string, field: CronField): Generator<number> {
  for (const item of text.split(',')) yield* itemValues(item, field)
}

function* itemValues(item: string, field: CronField): Generator<number> {
  const [base = '', step = '1'] = item.split('/')
  const { from, to } = base === '*' ? { from: field.min, to: field.max } : readRange(base, field)
  for (let value = from; value <= to; value += Number(step)) yield value
}

interface MonthDays {
  /** Bit 0 is the 1st, in all of them. */
  plain: Bits
  nearestWeekdays: Bits
  /** Bit 0 is the last day, bit 3 the one three days before it. */
  fromLast: Bits
  hasLastWeekday: boolean
}

function monthDaysOf(text: string, field: CronField): MonthDays {
  const days: MonthDays = { plain: 0, nearestWeekdays: 0, fromLast: 0, hasLastWeekday: false }
  for (const item of text.split(',')) {
    if (item === 'LW') days.hasLastWeekday = true
    else if (item.startsWith('L')) days.fromLast |= 1 << Number(item.slice(2))
    else if (item.endsWith('W')) days.nearestWeekdays |= 1 << (Number.parseInt(item, 10) - 1)
    else for (const value of itemValues(item, field)) days.plain |= 1 << (value - 1)
  }
  return days
}

function matchingDays(days: MonthDays, length: number, firstWeekday: number): Bits {
  let mask = days.plain
  for (let rest = days.fromLast; rest !== 0; rest &= rest - 1) {
    const day = length - (31 - Math.clz32(rest & -rest))
    if (day >= 1) mask |= 1 << (day - 1)
  }
  for (let rest = days.nearestWeekdays; rest !== 0; rest &= rest - 1) {
    const day = 32 - Math.clz32(rest & -rest)
    if (day <= length) mask |= 1 << (nearestWeekday(day, length, firstWeekday) - 1)
  }
  if (days.hasLastWeekday) {
    const weekday = (firstWeekday + length - 1) % 7
    mask |= 1 << (length - 1 - (weekday === 0 ? 2 : weekday === SATURDAY ? 1 : 0))
  }
  return mask
}

/** Monday to Friday, in the same month. */
function nearestWeekday(day: number, length: number, firstWeekday: number): number {
  const weekday = (firstWeekday + day - 1) % 7
  if (weekday === SATURDAY) return day === 1 ? 3 : day - 1
  if (weekday === 0) return day === length ? day - 2 : day + 1
  return day
}

interface Weekdays {
  /** Bit 0 is Sunday, in all of them. */
  plain: Bits
  last: Bits
  /** `nth[1]` are the weekdays whose second one in a month matches. */
  nth: readonly Bits[] | null
}

function weekdaysOf(text: string, field: CronField): Weekdays {
  const nth = [0, 0, 0, 0, 0]
  let plain = 0
  let last = 0
  for (const item of text.split(',')) {
    const which = /^(\d)#(\d)$/.exec(item)
    if (which !== null) nth[Number(which[2]) - 1] = (nth[Number(which[2]) - 1] as Bits) | (1 << Number(which[1]))
    else if (item.endsWith('L')) last |= 1 << Number.parseInt(item, 10)
    else for (const value of itemValues(item, field)) plain |= 1 << (value % 7)
  }
  return { plain, last, nth: nth.some((bits) => bits !== 0) ? nth : null }
}

function matchingWeekdays({ plain, last, nth }: Weekdays, length: number, firstWeekday: number): Bits {
  let mask = spread(plain, firstWeekday)
  nth?.forEach((weekdays, index) => {
    // The second ones of all weekdays are the 8th to the 14th.
    if (weekdays !== 0) mask |= spread(weekdays, firstWeekday) & (ALL_WEEKDAYS << (7 * index))
  })
  if (last !== 0) mask |= spread(last, firstWeekday) & (ALL_WEEKDAYS << (length - 7))
  return mask
}

/** The days of a month that fall on these weekdays. */
function spread(weekdays: Bits, firstWeekday: number): Bits {
  let mask = 0
  for (let rest = weekdays; rest !== 0; rest &= rest - 1) {
    const weekday = 31 - Math.clz32(rest & -rest)
    mask |= EVERY_SEVENTH << ((weekday - firstWeekday + 7) % 7)
  }
  return mask & 0x7fff_ffff
}
