import { CronPattern } from './cron-pattern.ts'
import { canonicalCron } from './cron-text.ts'
import { DAY_MS } from './duration.ts'
import { NOTHING_EXCLUDED } from './excluded-times.ts'
import { hasHashes, rarestOfHashes } from './hashed-field.ts'
import { notUnderstood, shown } from './not-understood.ts'
import { firstTimeOfDay } from './time-of-day.ts'
import { WallTimes } from './wall-times.ts'

/** The calendar repeats after 400 years, weekdays included. */
const CYCLE_MS = 146_097 * DAY_MS

/** The patterns of expressions that fire some time: the 30th of February is refused. */
export function firingPatterns(cron: string | readonly string[]): CronPattern[] {
  const expressions = typeof cron === 'string' ? [cron] : cron
  if (expressions.length === 0) throw notUnderstood('must have at least one cron expression')
  return expressions.map(firingPattern)
}

function firingPattern(cron: string): CronPattern {
  const pattern = new CronPattern(canonicalCron(cron))
  if (!fires(pattern)) throw notUnderstood(neverFires(cron))
  return pattern
}

const neverFires = (cron: string): string => `${shown(cron)} never fires: there is no such day`

function fires(pattern: CronPattern): boolean {
  return new WallTimes(pattern, NOTHING_EXCLUDED).next(0, CYCLE_MS) !== null
}

/** Refuses what would never fire: with `H`, for any job at all, and not by chance for some. */
export function mustFireForAll(cron: string): void {
  if (fires(new CronPattern(canonicalCron(rarestOfHashes(cron))))) return
  const dependsOnJob = cron.split(' ').slice(-3).some(hasHashes)
  throw notUnderstood(
    dependsOnJob
      ? `${shown(cron)} would never fire for some jobs: H may be a day that its months do not have`
      : neverFires(cron),
  )
}

/** How many different times of day there are; counting stops past `most`. */
export function countTimesOfDay(patterns: readonly CronPattern[], most: number): number {
  const times = new Set<number>()
  for (const pattern of patterns) {
    let time = firstTimeOfDay(pattern, 0, [])
    for (; time >= 0 && times.size <= most; time = firstTimeOfDay(pattern, time + 1, [])) times.add(time)
  }
  return times.size
}
