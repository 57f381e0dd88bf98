import type { Instant } from '../runtime/clock.ts'
import { type WhyNot, whyNot } from '../schedule/why-not.ts'
import { zoneOf } from '../schedule/zone.ts'
import { withDaysAround } from './explain-days.ts'
import type { ReadTimes } from './explain-timeline.ts'

/** The rule because of which a schedule does not fire, in words; of an excluded day, the calendar that has it. */
export interface Rule extends WhyNot {
  day: { calendar: string; date: string } | null
}

/** Null: it fires then. The compiled schedule is asked first: saying why compiles it anew, several times. */
export function ruleAgainst(times: ReadTimes, at: Instant): Rule | null {
  if (times.schedule.next(at - 1) === at) return null
  const found = whyNot(withDaysAround(times.spec, { from: at, to: at + 1 }), at)
  if (found === null) return null
  const [, index] = /^exclude\[(\d+)\]/.exec(found.message) ?? []
  const exclusion = index === undefined ? undefined : times.given.exclude?.[Number(index)]
  if (exclusion === undefined || !('calendar' in exclusion)) return { ...found, day: null }
  const date = new Date(zoneOf(times.spec.timezone).localOf(at)).toISOString().slice(0, 10)
  const message = found.message.replace(/^exclude\[\d+\]/, `the calendar ${exclusion.calendar}`)
  return { ...found, message, day: { calendar: exclusion.calendar, date } }
}
