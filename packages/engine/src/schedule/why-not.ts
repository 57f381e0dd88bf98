import type { ResolvedSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { compileSchedule } from './compile-schedule.ts'
import { localTimeOf } from './local-time.ts'

export interface WhyNot {
  rule: 'start_at' | 'end_at' | 'count' | 'exclude' | 'dst' | 'expression'
  message: string
}

/** Why a schedule does not fire at an instant, said for a person; null if it does. */
export function whyNot(spec: ResolvedSpec, at: Instant): WhyNot | null {
  if (compileSchedule(spec).next(at - 1) === at) return null
  const expression = 'cron' in spec ? [spec.cron].flat().join(' or ') : spec.every
  return { rule: 'expression', message: `${expression} does not fire at ${localTimeOf(spec, at).local}` }
}
