import { shapeOf, valuesOf } from './cron-field-values.ts'
import { listed, monthName, nth, ordinal, weekdayName } from './english-list.ts'
import { fieldPhrase } from './time-phrase.ts'

export interface DayFields {
  date: string
  month: string
  weekday: string
}

const DATES = { min: 1, max: 31 }
const MONTHS = { min: 1, max: 12 }
const WEEKDAYS = { min: 0, max: 7 }
const MAX_DATES = 8

/** On which days an expression fires; empty for every day. `period` is what a day of a month is a day of. */
export function dayPhrase({ date, month, weekday }: DayFields, period: 'every month' | 'the month'): string {
  const names = valuesOf(month, MONTHS)
  const months =
    month === '*' ? undefined : names === undefined ? fieldPhrase(month, 'month') : listed(names.map(monthName))
  const of = months === undefined ? period : names === undefined ? months : `every ${months}`
  const inMonths = months === undefined ? '' : `in ${months}`
  const dates = date === '*' ? undefined : datePhrase(date, of)
  const weekdays = weekday === '*' ? undefined : weekdayPhrase(weekday, { of, inMonths })
  if (dates !== undefined && weekdays !== undefined) return `${dates} or ${weekdays}`
  return dates ?? weekdays ?? inMonths
}

function datePhrase(date: string, of: string): string {
  const values = valuesOf(date, DATES)
  if (values !== undefined && values.length > MAX_DATES) return `on ${fieldPhrase(date, 'day')} of ${of}`
  if (values !== undefined) return `on the ${listed(values.map(ordinal))} of ${of}`
  return `on ${listed(date.split(',').map(dateItem))} of ${of}`
}

function dateItem(item: string): string {
  if (item === 'L') return 'the last day'
  if (item === 'LW') return 'the last weekday'
  if (item === '1W') return 'the first weekday'
  const nearest = /^(\d+)W$/.exec(item)
  if (nearest !== null) return `the weekday nearest to the ${ordinal(Number(nearest[1]))}`
  const before = /^L-(\d+)$/.exec(item)
  if (before !== null) return `the ${ordinal(Number(before[1]))} day before the last`
  return /^\d+$/.test(item) ? `the ${ordinal(Number(item))}` : fieldPhrase(item, 'day')
}

function weekdayPhrase(weekday: string, { of, inMonths }: { of: string; inMonths: string }): string {
  const values = valuesOf(weekday, WEEKDAYS)
  if (values !== undefined) return [plainWeekdays(weekday, values), inMonths].filter(Boolean).join(' ')
  const items = weekday.split(',').map((item) => {
    const which = /^(\d)#(\d)$/.exec(item)
    if (which !== null)
      return { text: `the ${nth(Number(which[2]))} ${weekdayName(Number(which[1]))}`, isOfMonth: true }
    if (/^\dL$/.test(item)) return { text: `the last ${weekdayName(Number(item[0]))}`, isOfMonth: true }
    const plain = valuesOf(item, WEEKDAYS)
    const text = plain === undefined ? fieldPhrase(item, 'weekday') : listed(plain.map((day) => `${weekdayName(day)}s`))
    return { text, isOfMonth: false }
  })
  const isOfMonth = items.some((item) => item.isOfMonth)
  const isAll = items.every((item) => item.isOfMonth)
  const text = `on ${listed(
    items.map((item) => item.text),
    isAll ? 'and' : 'or',
  )}`
  return isOfMonth ? `${text} of ${of}` : [text, inMonths].filter(Boolean).join(' ')
}

/** `0-7` restricts nothing, but beside a restricted day of the month it is no star either: then either fires. */
export function isEveryWeekday(weekday: string): boolean {
  return new Set(valuesOf(weekday, WEEKDAYS)?.map((day) => day % 7)).size === 7
}

function plainWeekdays(weekday: string, values: readonly number[]): string {
  if (isEveryWeekday(weekday)) return 'on every day of the week'
  const shape = shapeOf(weekday)
  if (shape.kind === 'range' && shape.step === 1 && shape.to - shape.from > 1) {
    return `from ${weekdayName(shape.from)} to ${weekdayName(shape.to)}`
  }
  const days = [...new Set(values.map((day) => day % 7))].sort((a, b) => ((a + 6) % 7) - ((b + 6) % 7))
  return `on ${listed(days.map((day) => `${weekdayName(day)}s`))}`
}
