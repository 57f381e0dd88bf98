import type { ScheduleSpec } from '../../job/definition.ts'
import type { Instant } from '../../runtime/clock.ts'

/** A recurring schedule as one English sentence without its full stop. */
export function sentenceOf(spec: ScheduleSpec): string {
  return 'cron' in spec ? `${[spec.cron].flat().join(' and ')}, ${spec.timezone}` : `every ${spec.every}`
}

/** One moment as English words. */
export function sentenceOfOnce(at: Instant, timezone: string): string {
  return `once at ${new Date(at).toISOString()}, ${timezone}`
}
