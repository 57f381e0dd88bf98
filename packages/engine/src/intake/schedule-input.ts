import type { Definition, DstPolicy, Exclusion, ScheduleSpec, Words } from '../job/definition.ts'
import type { CatchUpPolicy, Overlap } from '../job/states.ts'
import { formatDuration } from '../schedule/duration.ts'
import { intervalText } from './describe-when.ts'
import type { ExclusionInput } from './job-input.ts'

/** When a job runs, as it could be sent again. */
export interface ScheduleView {
  runAt?: Date
  cron?: string | readonly string[]
  every?: string
  /** The words; what they were understood as is said by the job's description. */
  when?: string
  timezone?: string
  startAt?: Date
  endAt?: Date
  maxRuns?: number
  exclude?: ExclusionInput[]
  onExcluded?: 'next_business_day'
  dst?: DstPolicy
  overlap?: Overlap
  catchUp?: { policy: CatchUpPolicy; window: string; max: number }
  jitter?: string
}

type Recurring = Pick<Definition, 'when' | 'overlap' | 'jitterMs' | 'maxRuns'> & { schedule: ScheduleSpec }

/** Of a recurring job. What its words say themselves is not said again. */
export function scheduleInput({ schedule, when: words, overlap, jitterMs, maxRuns }: Recurring): ScheduleView {
  const { catchUp, endAt, timezone, exclude, onExcluded } = schedule
  const says = words?.says ?? []
  const startAt = says.includes('startAt') ? undefined : startOf(schedule)
  const dst = 'cron' in schedule ? schedule.dst : undefined
  return {
    ...(words === undefined ? rhythmOf(schedule) : { when: words.text }),
    timezone,
    ...(startAt === undefined ? {} : { startAt: new Date(startAt) }),
    ...(endAt === undefined || says.includes('endAt') ? {} : { endAt: new Date(endAt) }),
    ...(maxRuns === undefined || says.includes('maxRuns') ? {} : { maxRuns }),
    ...(exclude === undefined ? {} : { exclude: exclude.map(exclusionInput) }),
    ...(onExcluded === undefined ? {} : { onExcluded }),
    ...(dst === undefined ? {} : { dst }),
    ...(overlap === undefined ? {} : { overlap }),
    ...(jitterMs === undefined ? {} : { jitter: duration(jitterMs) }),
    ...(catchUp === undefined
      ? {}
      : { catchUp: { policy: catchUp.policy, window: duration(catchUp.windowMs), max: catchUp.max } }),
  }
}

/** Of a one-off that was to run at a time of its own. */
export function onceInput(at: Date, words: Words | undefined): ScheduleView {
  return words === undefined ? { runAt: at } : { when: words.text, timezone: words.timezone ?? 'UTC' }
}

const rhythmOf = (schedule: ScheduleSpec): ScheduleView =>
  'cron' in schedule ? { cron: schedule.cron } : { every: intervalText(schedule) }

/** A repeating interval has its start in itself. */
function startOf(schedule: ScheduleSpec): number | undefined {
  if ('cron' in schedule) return schedule.startAt
  return schedule.count === undefined ? schedule.anchor : undefined
}

function exclusionInput(exclusion: Exclusion): ExclusionInput {
  if ('date' in exclusion) return exclusion.date
  if ('fromAt' in exclusion) return { from: new Date(exclusion.fromAt), to: new Date(exclusion.toAt) }
  return exclusion
}

const duration = (ms: number): string => formatDuration({ kind: 'clock', ms })
