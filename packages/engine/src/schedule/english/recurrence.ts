import type { Instant } from '../../runtime/clock.ts'
import { canonicalCron } from '../cron-text.ts'
import type { Clauses, Frequency } from './clauses.ts'
import type { CronDays } from './cron-days.ts'
import type { CronTime } from './cron-times.ts'
import type { Start } from './resolve-bounds.ts'
import type { Today } from './today.ts'
import type { Words } from './words.ts'

/** What a text means that recurs: expressions where they say it exactly, else an interval with its first fire time. */
export type Meaning = { cron: string[] } | { every: string; startAt: Instant }

export interface Recurrence {
  words: Words
  clauses: Clauses
  frequency: Frequency
  today: Today
  start: Start | undefined
  /** The start, if it also says on which day or at which time where nothing else does. */
  begun: Start | undefined
}

/** All times on all days. */
export function expressions(days: readonly CronDays[], times: readonly CronTime[]): string[] {
  return days.flatMap(({ date, month, weekday }) =>
    times.map(({ second, minute, hour }) => canonicalCron([second, minute, hour, date, month, weekday].join(' '))),
  )
}
