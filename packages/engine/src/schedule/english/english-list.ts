import { MONTH_NAMES, WEEKDAY_NAMES } from './vocabulary.ts'

/** `a`, `a and b`, `a, b and c`. */
export function listed(items: readonly string[], joint: 'and' | 'or' = 'and'): string {
  const last = items.at(-1) ?? ''
  return items.length < 2 ? last : `${items.slice(0, -1).join(', ')} ${joint} ${last}`
}

export function ordinal(number: number): string {
  const isTeen = number % 100 >= 11 && number % 100 <= 13
  return `${number}${isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][number % 10] ?? 'th')}`
}

const NTH = ['first', 'second', 'third', 'fourth', 'fifth']

export function nth(number: number): string {
  return NTH[number - 1] ?? ordinal(number)
}

export function counted(count: number, noun: string): string {
  return count === 1 ? noun : `${count} ${noun}s`
}

export function monthName(month: number): string {
  return MONTH_NAMES[month - 1] ?? String(month)
}

/** 0 and 7 are Sunday. */
export function weekdayName(weekday: number): string {
  return WEEKDAY_NAMES[weekday % 7] ?? String(weekday)
}

/** `09:00`, with seconds where there are any. */
export function clockText(hour: number, minute: number, second = 0): string {
  const digits = [hour, minute, ...(second === 0 ? [] : [second])].map((value) => String(value).padStart(2, '0'))
  return digits.join(':')
}
