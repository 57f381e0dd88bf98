import { BelfryError, type Complaint } from '../errors.ts'
import type { ResolvedSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { compileSchedule } from '../schedule/compile-schedule.ts'

/** Which rule leaves a schedule without a time from an instant on; null if it has one. */
export function whyNever(spec: ResolvedSpec, from: Instant): Complaint | null {
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

export function neverFires(spec: ResolvedSpec, from: Instant): BelfryError {
  const complaint = whyNever(spec, from) ?? { path: 'endAt', message: 'comes before the first fire time' }
  return new BelfryError('invalid_job', `the schedule never fires: ${complaint.path} ${complaint.message}`, {
    complaints: [complaint],
  })
}
