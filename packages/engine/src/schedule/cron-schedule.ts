import { Cron } from 'croner'
import type { CronSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { canonicalCron } from './cron-text.ts'
import { notUnderstood, shown } from './not-understood.ts'
import { END_OF_TIME, type Schedule } from './schedule.ts'
import { zoneOf } from './zone.ts'

/** Any instant will do: a calendar repeats after 400 years, and the evaluator looks that far. */
const REFERENCE: Instant = Date.UTC(2024, 0, 1)
const SECOND_MS = 1_000
/** How fast the search backwards widens: 13 steps reach beyond a century. */
const WIDENING = 8

/** A compiled expression takes 83 KB (it lists ten thousand years), a schedule far less: only so many stay compiled. */
const MAX_COMPILED = 500
const compiled = new Map<string, Cron>()

function compiledCron(expression: string, zone: string): Cron {
  const key = `${zone} ${expression}`
  let cron = compiled.get(key)
  if (cron === undefined) {
    // An offset of zero spares the evaluator its zone arithmetic, which is most of its cost.
    const place = zone === 'UTC' ? { utcOffset: 0 } : { timezone: zone }
    cron = new Cron(expression, { ...place, paused: true, mode: '5-or-6-parts' })
    if (compiled.size >= MAX_COMPILED) compiled.clear()
    compiled.set(key, cron)
  }
  return cron
}

export class CronSchedule implements Schedule {
  readonly #expression: string
  readonly #zone: string
  readonly #startAt: Instant
  readonly #endAt: Instant

  constructor(spec: Pick<CronSpec, 'cron' | 'timezone' | 'startAt' | 'endAt'>) {
    this.#expression = canonicalCron(spec.cron)
    this.#zone = zoneOf(spec.timezone).name
    this.#startAt = spec.startAt ?? 0
    this.#endAt = Math.min(spec.endAt ?? END_OF_TIME, END_OF_TIME)
    if (this.#cron().nextRun(new Date(REFERENCE)) === null) {
      throw notUnderstood(`${shown(spec.cron)} never fires: there is no such day`)
    }
  }

  next(after: Instant): Instant | null {
    const from = Math.max(after, this.#startAt - 1)
    if (from >= this.#endAt) return null
    const fire = this.#cron().nextRun(new Date(from))?.getTime() ?? END_OF_TIME
    return fire < this.#endAt ? fire : null
  }

  latest(atOrBefore: Instant, after: Instant): Instant | null {
    let clear = atOrBefore
    let found: Instant | null = null
    for (let span = SECOND_MS; found === null; span *= WIDENING) {
      const from = Math.max(after, atOrBefore - span)
      if (from >= clear) return null
      found = this.#within(from, atOrBefore)
      if (found === null) clear = from
    }
    // Always: `found` fires, and nothing fires in (clear, atOrBefore]. Halving what lies between ends in few steps, where
    // walking would visit each of perhaps thousands of fire times. Whole seconds fire, so less than one holds none.
    while (clear - found >= SECOND_MS) {
      const middle = found + Math.floor((clear - found) / 2)
      const later = this.#within(middle, atOrBefore)
      if (later === null) clear = middle
      else found = later
    }
    return found
  }

  count(after: Instant, until: Instant, limit: number): number {
    let counted = 0
    for (let fire = this.next(after); fire !== null && fire <= until && counted < limit; fire = this.next(fire))
      counted++
    return counted
  }

  #cron(): Cron {
    return compiledCron(this.#expression, this.#zone)
  }

  #within(after: Instant, atOrBefore: Instant): Instant | null {
    const fire = this.next(after)
    return fire !== null && fire <= atOrBefore ? fire : null
  }
}
