import type { ExclusionInput } from '../../src/intake/job-input.ts'
import { type Day, dayOf } from './cron-shape.ts'
import type { Dice } from './cron-shapes.ts'
import type { Span } from './mixed-jobs.ts'

const DAY = 86_400_000
const dateText = (midnight: number): string => new Date(midnight).toISOString().slice(0, 10)

interface Excluded {
  exclude: ExclusionInput[]
  /** Whether a local time is excluded. */
  isOut(local: number): boolean
}

/** Days, ranges of days, and days that a cron names; `isOut` knows them without reading the text. */
export function exclusion(dice: Dice, { start, end }: Span): Excluded {
  const days = Math.floor((end - start) / DAY)
  const midnight = (local: number) => Math.floor(local / DAY) * DAY
  const first = midnight(start) + dice.below(days) * DAY
  switch (dice.below(3)) {
    case 0: {
      const dates = [0, 1, 2].map(() => midnight(start) + dice.below(days) * DAY)
      return { exclude: dates.map(dateText), isOut: (local) => dates.includes(midnight(local)) }
    }
    case 1: {
      const last = first + dice.below(30) * DAY
      return {
        exclude: [{ from: dateText(first), to: dateText(last) }],
        isOut: (local) => midnight(local) >= first && midnight(local) <= last,
      }
    }
    default: {
      const { text, isOn } = dice.of(NAMED_DAYS)
      return { exclude: [{ cron: text }], isOut: (local) => isOn(dayOf(midnight(local))) }
    }
  }
}

/** Every second of some days. */
const NAMED_DAYS: readonly { text: string; isOn(day: Day): boolean }[] = [
  { text: '* * * * * 0,6', isOn: ({ weekday }) => weekday === 0 || weekday === 6 },
  { text: '* * * 24-31 12 *', isOn: ({ month, date }) => month === 12 && date >= 24 },
  { text: '* * * 1 * *', isOn: ({ date }) => date === 1 },
]
