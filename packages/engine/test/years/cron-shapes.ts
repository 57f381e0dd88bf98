import type { CronShape, Day } from './cron-shape.ts'

const NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']
const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']

export interface Dice {
  /** One of them. */
  of<T>(items: readonly T[]): T
  /** A whole number from 0 to below the limit. */
  below(limit: number): number
}

const everyDay = () => true
const range = (from: number, to: number, step = 1): number[] =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step)

/** The weekday nearest to a date, in the same month. */
function isNearestWeekday(day: Day, wanted: number): boolean {
  if (day.weekday === 0 || day.weekday === 6) return false
  const first = (day.weekday - day.date + 1 + 35) % 7
  const weekday = (first + wanted - 1) % 7
  if (weekday === 6) return day.date === (wanted === 1 ? 3 : wanted - 1)
  if (weekday === 0) return day.date === (wanted === day.last ? wanted - 2 : wanted + 1)
  return day.date === wanted
}

/** Few, since each further day and hour is one more stop of the simulation; on Sundays clocks change. */
const WEEKDAYS = [0, 0, 6] as const
const DATES = [1, 13, 29, 31] as const

/** Days of the expression: its last three fields, and which days they mean. */
const DAYS: readonly ((dice: Dice) => { text: string; isOn(day: Day): boolean })[] = [
  (dice) => {
    const day = dice.of(WEEKDAYS)
    return { text: `* * ${dice.of([String(day), NAMES[day]])}`, isOn: ({ weekday }) => weekday === day }
  },
  () => ({ text: '? * 6,7', isOn: ({ weekday }) => weekday === 0 || weekday === 6 }),
  () => ({ text: '* * */6', isOn: ({ weekday }) => weekday === 0 || weekday === 6 }),
  (dice) => {
    const date = dice.of(DATES)
    return { text: `${date} * *`, isOn: (day) => day.date === date }
  },
  () => ({ text: '1-31/12 * *', isOn: ({ date }) => [1, 13, 25].includes(date) }),
  () => ({ text: 'L * *', isOn: ({ date, last }) => date === last }),
  () => ({
    text: 'LW * ?',
    isOn: ({ date, weekday, last }) =>
      (weekday >= 1 && weekday <= 5 && date === last) || (weekday === 5 && last - date < 3 && last - date > 0),
  }),
  (dice) => {
    const date = dice.of([1, 13])
    return { text: `${date}W * *`, isOn: (day) => isNearestWeekday(day, date) }
  },
  (dice) => {
    const [day, nth] = [dice.of(WEEKDAYS), 1 + dice.below(5)]
    return {
      text: `* * ${day}#${nth}`,
      isOn: ({ weekday, date }) => weekday === day && Math.ceil(date / 7) === nth,
    }
  },
  (dice) => {
    const day = dice.of(WEEKDAYS)
    return { text: `* * ${day}L`, isOn: ({ weekday, date, last }) => weekday === day && date > last - 7 }
  },
  // Both restricted: either fires.
  (dice) => {
    const day = dice.of(WEEKDAYS)
    return { text: `13 * ${day}`, isOn: ({ weekday, date }) => date === 13 || weekday === day }
  },
  (dice) => {
    const [from, to] = [1 + dice.below(6), 7 + dice.below(6)]
    return {
      text: `1,13 ${MONTHS[from - 1]}-${MONTHS[to - 1]} *`,
      isOn: ({ date, month }) => (date === 1 || date === 13) && month >= from && month <= to,
    }
  },
  () => ({ text: '29 2,3 *', isOn: ({ date, month }) => date === 29 && (month === 2 || month === 3) }),
]

/** Expressions that fire now and then: their days are few, and their hours those at which clocks change. */
function seldom(dice: Dice): CronShape {
  const { text, isOn } = dice.of(DAYS)(dice)
  const [hour, minute] = dice.of([
    [0, 0],
    [2, 30],
    [3, 0],
  ] as const)
  const fixed = { isOn, hour: 'fixed', hours: [hour], minutes: [minute] } as const
  switch (dice.below(12)) {
    case 0:
      return { ...fixed, text: `0/30 ${hour} ${text}`, minutes: [0, 30] }
    case 1:
      return { ...fixed, text: `0 1,2,3 ${text}`, hours: [1, 2, 3], minutes: [0] }
    case 2:
      return { ...fixed, text: `30 0-4 ${text}`, hour: 'wild', hours: range(0, 4), minutes: [30] }
    case 3:
      return { ...fixed, text: `30 ${minute} ${hour} ${text}`, second: 30 }
    default:
      return { ...fixed, text: `${minute} ${hour} ${text}` }
  }
}

const NICKNAMES: readonly CronShape[] = [
  { text: '@yearly', isOn: ({ month, date }) => month === 1 && date === 1, hour: 'fixed', hours: [0], minutes: [0] },
  { text: '@monthly', isOn: ({ date }) => date === 1, hour: 'fixed', hours: [0], minutes: [0] },
  { text: '@weekly', isOn: ({ weekday }) => weekday === 0, hour: 'fixed', hours: [0], minutes: [0] },
  { text: '@daily', isOn: everyDay, hour: 'fixed', hours: [0], minutes: [0] },
]

/** Expressions that fire every day, around the hours at which clocks change. */
const OFTEN: readonly CronShape[] = [
  { text: '30 2 * * *', isOn: everyDay, hour: 'fixed', hours: [2], minutes: [30] },
  { text: '30 1,2 * * *', isOn: everyDay, hour: 'fixed', hours: [1, 2], minutes: [30] },
  { text: '30 1-2 * * *', isOn: everyDay, hour: 'wild', hours: [1, 2], minutes: [30] },
  { text: '30 2/12 * * *', isOn: everyDay, hour: 'wild', hours: [2, 14], minutes: [30] },
  {
    text: '30 2 * * MON-FRI',
    isOn: ({ weekday }) => weekday >= 1 && weekday <= 5,
    hour: 'fixed',
    hours: [2],
    minutes: [30],
  },
]

export function cronShape(dice: Dice, pace: 'often' | 'seldom'): CronShape {
  if (pace === 'often') return dice.of(OFTEN)
  return dice.below(12) === 0 ? dice.of(NICKNAMES) : seldom(dice)
}
