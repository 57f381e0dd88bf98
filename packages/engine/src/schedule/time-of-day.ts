import {
  containsSixty,
  firstFrom,
  firstOfSixty,
  hasBit,
  hasOfSixty,
  lastOfSixty,
  lastUntil,
  type SixtyBits,
} from './bits.ts'
import type { CronPattern } from './cron-pattern.ts'

/** Times of day are seconds since midnight on the wall clock: 0 to 86,399. -1 is none. */

/** The first time of day from `from` on that a pattern matches and none of `excluded` does. */
export function firstTimeOfDay(pattern: CronPattern, from: number, excluded: readonly CronPattern[]): number {
  const [fromHour, fromMinute, fromSecond] = clockOf(from)
  for (let hour = firstFrom(pattern.hours, fromHour); hour >= 0; hour = firstFrom(pattern.hours, hour + 1)) {
    const others = excludedInHour(pattern, hour, excluded)
    if (others === 'all') continue
    const startMinute = hour === fromHour ? fromMinute : 0
    let minute = firstOfSixty(pattern.minutes, startMinute)
    for (; minute >= 0; minute = firstOfSixty(pattern.minutes, minute + 1)) {
      const startSecond = hour === fromHour && minute === fromMinute ? fromSecond : 0
      const second = firstOfSixty(secondsLeft(pattern, minute, others), startSecond)
      if (second >= 0) return hour * 3_600 + minute * 60 + second
    }
  }
  return -1
}

/** The last time of day until `until` that a pattern matches and none of `excluded` does. */
export function lastTimeOfDay(pattern: CronPattern, until: number, excluded: readonly CronPattern[]): number {
  const [untilHour, untilMinute, untilSecond] = clockOf(until)
  for (let hour = lastUntil(pattern.hours, untilHour); hour >= 0; hour = lastUntil(pattern.hours, hour - 1)) {
    const others = excludedInHour(pattern, hour, excluded)
    if (others === 'all') continue
    const endMinute = hour === untilHour ? untilMinute : 59
    let minute = lastOfSixty(pattern.minutes, endMinute)
    for (; minute >= 0; minute = lastOfSixty(pattern.minutes, minute - 1)) {
      const endSecond = hour === untilHour && minute === untilMinute ? untilSecond : 59
      const second = lastOfSixty(secondsLeft(pattern, minute, others), endSecond)
      if (second >= 0) return hour * 3_600 + minute * 60 + second
    }
  }
  return -1
}

function clockOf(time: number): [hour: number, minute: number, second: number] {
  return [Math.floor(time / 3_600), Math.floor(time / 60) % 60, time % 60]
}

const NONE: readonly CronPattern[] = []

/** Those of the excluded patterns that concern an hour; `all` if one of them leaves out all of it. */
function excludedInHour(
  pattern: CronPattern,
  hour: number,
  excluded: readonly CronPattern[],
): readonly CronPattern[] | 'all' {
  if (excluded.length === 0) return NONE
  const others = excluded.filter(({ hours }) => hasBit(hours, hour))
  const coversHour = ({ minutes, seconds }: CronPattern) =>
    containsSixty(minutes, pattern.minutes) && containsSixty(seconds, pattern.seconds)
  return others.some(coversHour) ? 'all' : others
}

function secondsLeft(pattern: CronPattern, minute: number, excluded: readonly CronPattern[]): SixtyBits {
  if (excluded.length === 0) return pattern.seconds
  let { low, high } = pattern.seconds
  for (const { minutes, seconds } of excluded) {
    if (!hasOfSixty(minutes, minute)) continue
    low &= ~seconds.low
    high &= ~seconds.high
  }
  return { low, high }
}
