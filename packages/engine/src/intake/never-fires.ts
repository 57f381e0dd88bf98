import { BelfryError, type Complaint, refusal } from '../errors.ts'
import type { ResolvedSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { compileSchedule } from '../schedule/compile-schedule.ts'

/** Which rule leaves a schedule without a time from an instant on; null if it has one. */
export function whyNever(spec: ResolvedSpec, from: Instant): Complaint | null {
  try {
    return ruleOf(spec, from)
  } catch (error) {
    if (!(error instanceof BelfryError) || spec.onExcluded === undefined) throw error
    // Every part of it was understood, so it is the moving of times that cannot be done.
    return { path: 'onExcluded', message: error.message.replace(/^onExcluded: /, '') }
  }
}

function ruleOf(spec: ResolvedSpec, from: Instant): Complaint | null {
  const fires = (other: ResolvedSpec): boolean => compileSchedule(other).next(from - 1) !== null
  if (fires(spec)) return null
  const { exclude, onExcluded, ...included } = spec
  const { endAt, ...endless } = spec
  const { endAt: _, ...free } = included
  if (exclude !== undefined && fires(included)) {
    return { path: 'exclude', message: 'leaves out every time at which it would fire' }
  }
  if (endAt !== undefined && fires(endless)) return { path: 'endAt', message: 'comes before the first fire time' }
  if (exclude !== undefined && endAt !== undefined && fires(free)) {
    return { path: 'endAt', message: 'comes before the first time that exclude leaves' }
  }
  if ('every' in spec && spec.count !== undefined) {
    return { path: 'every', message: `all of its ${spec.count} times lie in the past` }
  }
  return { path: 'cron' in spec ? 'cron' : 'every', message: 'never fires' }
}

/** What a schedule holds is read, hashed and stored as a whole. */
const MAX_EXCLUDED_DAYS = 20_000

function tooManyDays({ exclude = [] }: ResolvedSpec): Complaint | null {
  const days = exclude.reduce((sum, one) => sum + ('days' in one ? one.days.length : 1), 0)
  if (days <= MAX_EXCLUDED_DAYS) return null
  return { path: 'exclude', message: `leaves out ${days} days, and at most ${MAX_EXCLUDED_DAYS} are possible` }
}

/** Throws what `whyNever` says, if it does, and refuses more excluded days than a schedule can hold. */
export function mustFire(spec: ResolvedSpec, from: Instant): void {
  const complaint = tooManyDays(spec) ?? whyNever(spec, from)
  if (complaint !== null) throw refusal('invalid_job', complaint.path, complaint.message)
}

/** For a schedule that was found to have no time from an instant on. */
export function neverFires(spec: ResolvedSpec, from: Instant): BelfryError {
  const { path, message } = whyNever(spec, from) ?? { path: 'endAt', message: 'comes before the first fire time' }
  return refusal('invalid_job', path, message)
}
