import { type Description, describeAfter, describeOnce, describeRecurring, fireTimes } from '../intake/describe-when.ts'
import type { Definition } from '../job/definition.ts'
import { shardOfJob } from '../job/ids.ts'
import type { Schedules } from '../promotion/schedules.sql.ts'
import type { Clock } from '../runtime/clock.ts'
import type { FireTimeText } from '../schedule/local-time.ts'
import type { JobRow } from './job-places.sql.ts'
import { type JobView, onceAtOf } from './job-view.ts'

export interface DescribeDeps {
  clock: Clock
  schedules: Schedules
}

/** A job, and when it runs, in words and times. */
export type DescribedJob = JobView & Description

const TIMES = 5

/** The times are those of the schedule that it is promoted by, whatever its calendars have become since. */
export async function describeJob(row: JobRow, deps: DescribeDeps): Promise<Description> {
  const definition = JSON.parse(row.definition) as Partial<Definition>
  const { schedule, when: words, maxRuns = null } = definition
  if (definition.after !== undefined) return describeAfter(definition.after, row.isOneOff ? 'immediate' : 'recurring')
  if (schedule !== undefined) return describeRecurring(schedule, maxRuns, await timesOf(row, deps))
  return describeOnce(onceAtOf(row, definition), words?.timezone ?? 'UTC', row.timerDueAt === null ? 'over' : 'to come')
}

async function timesOf(row: JobRow, { clock, schedules }: DescribeDeps): Promise<FireTimeText[]> {
  const { jobId, timerNominalAt: nominalAt, timerDueAt: dueAt, scheduleId, remainingRuns } = row
  if (scheduleId === null) return []
  await schedules.load([{ shard: shardOfJob(jobId), scheduleId }])
  const known = schedules.get(scheduleId)
  if (known === null) return []
  const isPaused = dueAt === null || !Number.isFinite(dueAt)
  const after = isPaused || nominalAt === null ? clock.now() : nominalAt - 1
  return fireTimes(known, { after, count: Math.min(TIMES, remainingRuns ?? TIMES) })
}
