import type { Instant } from '../../src/runtime/clock.ts'
import type { WallClock } from './wall-clock.ts'

const DAY = 86_400_000

export interface Day {
  month: number
  date: number
  weekday: number
  last: number
}

/** A cron expression and, beside its text, what it means, written down by whoever made it up: nobody parses the text. */
export interface CronShape {
  text: string
  isOn(day: Day): boolean
  hours: readonly number[]
  /** Numbers and lists of them are fixed; ranges, steps and `*` follow the clock. */
  hour: 'fixed' | 'wild'
  minutes: readonly number[]
  second?: number
}

export interface Dst {
  gap?: 'after' | 'skip'
  overlap?: 'first' | 'last' | 'both'
}

/** Every instant in [from, to) at which it fires, day by day and minute by minute. */
export function timesOfCron(
  shape: CronShape,
  wall: WallClock,
  { from, to, dst }: { from: Instant; to: Instant; dst?: Dst },
): Instant[] {
  const times = new Set<Instant>()
  for (let midnight = Math.floor(from / DAY) * DAY - 2 * DAY; midnight < to + 2 * DAY; midnight += DAY) {
    if (!shape.isOn(dayOf(midnight))) continue
    for (const hour of shape.hours)
      for (const minute of shape.minutes) {
        const local = midnight + ((hour * 60 + minute) * 60 + (shape.second ?? 0)) * 1_000
        for (const at of instantsOf(local, wall, rulesOf(shape.hour, dst))) if (at >= from && at < to) times.add(at)
      }
  }
  return [...times].sort((a, b) => a - b)
}

const rulesOf = (hour: 'fixed' | 'wild', dst: Dst = {}): Required<Dst> => ({
  gap: dst.gap ?? (hour === 'fixed' ? 'after' : 'skip'),
  overlap: dst.overlap ?? (hour === 'fixed' ? 'first' : 'both'),
})

function instantsOf(local: number, wall: WallClock, { gap, overlap }: Required<Dst>): Instant[] {
  const shown = wall.instantsOf(local)
  if (shown.length === 0) return gap === 'after' ? [wall.afterGap(local)] : []
  if (overlap === 'both') return shown
  return overlap === 'first' ? shown.slice(0, 1) : shown.slice(-1)
}

const days = new Map<number, Day>()

/** Remembered: a thousand jobs ask about the same year. */
export function dayOf(midnight: number): Day {
  let day = days.get(midnight)
  if (day === undefined) {
    day = read(midnight)
    days.set(midnight, day)
  }
  return day
}

function read(midnight: number): Day {
  const day = new Date(midnight)
  const last = new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 0)).getUTCDate()
  return { month: day.getUTCMonth() + 1, date: day.getUTCDate(), weekday: day.getUTCDay(), last }
}
