import type { Instant } from '../runtime/clock.ts'
import { fireTimesIn, type Schedule } from '../schedule/schedule.ts'
import type { Queryable } from '../store/database.ts'
import type { JobToBackfill } from './job-to-backfill.sql.ts'
import { takenTimes } from './taken-times.sql.ts'
import { MAX_TIMES, refuse, type UnderstoodBackfill } from './understand-backfill.ts'

/** Looked at in one go: a calendar takes some microseconds for each, and others want the processor too. */
const PART = 500
/** So many of the first and of the last times are shown. */
const SHOWN = 5

export interface BackfillPlan {
  /** As far as the schedule goes and has decided. */
  from: Instant
  to: Instant
  /** Times that would become runs. */
  count: number
  /** Times that have or had a run. */
  leftOut: number
  first: Instant[]
  last: Instant[]
  /** What is not quite as it was asked for. */
  notes: string[]
}

/** What a backfill would do now. */
export async function planBackfill(
  db: Queryable,
  job: JobToBackfill,
  schedule: Schedule,
  asked: UnderstoodBackfill,
  knownSince: Instant,
): Promise<BackfillPlan> {
  const { from, to, notes } = cut(job, asked, knownSince)
  const plan: BackfillPlan = { from, to, count: 0, leftOut: 0, first: [], last: [], notes }
  for (let position = from; ; ) {
    const times = fireTimesIn(schedule, position, to, PART)
    const taken = await takenTimes(db, job, times)
    for (const at of times) {
      if (taken.has(at)) plan.leftOut++
      else show(plan, at)
    }
    if (plan.count + plan.leftOut > MAX_TIMES)
      throw refuse('to', `the schedule has more than ${inWords(MAX_TIMES)} times in this range: ask for a part of it`)
    if (times.length < PART) break
    position = (times.at(-1) as Instant) + 1
  }
  if (plan.count + plan.leftOut === 0) notes.push('The schedule has no time in this range.')
  else if (plan.count === 0) notes.push('Every time in this range has a run already.')
  return plan
}

function show(plan: BackfillPlan, at: Instant): void {
  plan.count++
  if (plan.first.length < SHOWN) plan.first.push(at)
  plan.last.push(at)
  if (plan.last.length > SHOWN) plan.last.shift()
}

/** A schedule decides its coming times itself, and has none before it begins; what had a run must still be on record. */
function cut({ undecidedFrom, beginsAt }: JobToBackfill, asked: UnderstoodBackfill, knownSince: Instant) {
  const notes: string[] = []
  const begin = Math.max(asked.from, beginsAt ?? asked.from)
  const from = Math.min(asked.to, Math.max(begin, knownSince))
  const to = Math.max(from, Math.min(asked.to, undecidedFrom))
  if (begin > asked.from)
    notes.push(`The schedule begins at ${textOf(beginsAt as Instant)}: there is nothing before it.`)
  if (knownSince > begin)
    notes.push(
      `Begins at ${textOf(knownSince)}, the oldest day that history keeps: which times before it have had a run is not known any more.`,
    )
  if (to < asked.to)
    notes.push(
      `Cut at ${textOf(undecidedFrom)}: that time and those after it are still for the schedule itself to run or to skip.`,
    )
  return { from, to, notes }
}

const textOf = (at: Instant): string => new Date(at).toISOString()
export const inWords = (count: number): string => count.toLocaleString('en')
