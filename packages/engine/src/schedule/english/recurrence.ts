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

/** Nobody says more at once; an odd step over a long window would make dozens. */
const MAX_CRONS = 20

export function expressions(
  { words, frequency }: Pick<Recurrence, 'words' | 'frequency'>,
  days: readonly CronDays[],
  times: readonly CronTime[],
): string[] {
  const texts = days.flatMap((day) =>
    times.map((time) =>
      canonicalCron([time.second, time.minute, time.hour, day.date, day.month, day.weekday].join(' ')),
    ),
  )
  const cron = [...new Set(texts)]
  if (cron.length > MAX_CRONS) throw words.refuse(frequency.token, 'begins too many different times: say fewer')
  return cron
}
