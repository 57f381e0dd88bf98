import { type Complaints, readChoice, readClockMs, readInteger, readRecord } from '../input/read-fields.ts'
import { type CatchUp, DEFAULT_CATCH_UP, DEFAULT_OVERLAP, type ScheduleSpec, type Words } from '../job/definition.ts'
import { CATCH_UP, type CatchUpPolicy, OVERLAP, type Overlap } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import { whyNever } from './never-fires.ts'
import { aloneOf } from './resolve-when.ts'
import { readInstant, readZone, withinReach } from './understand-bounds.ts'
import { addDst, addExclusions } from './understand-exclude.ts'
import type { Rhythm } from './understand-rhythm.ts'

export interface RecurringWhen {
  kind: 'recurring'
  schedule: ScheduleSpec
  /** When it was asked for: an interval without a start of its own has its first time then. */
  askedAt: Instant
  overlap: Overlap
  jitterMs: number
  maxRuns: number | null
  words?: Words
}

const OVERLAPS = Object.keys(OVERLAP) as Overlap[]
const CATCH_UPS = Object.keys(CATCH_UP) as CatchUpPolicy[]
const YEAR_MS = 366 * DAY_MS
const MAX_RUNS = 2_147_483_647

/** `anchor`: what an interval without a start of its own is counted from. */
export function understandRecurring(
  complaints: Complaints,
  job: Record<string, unknown>,
  rhythm: Rhythm,
  at: { now: Instant; anchor: Instant },
): { when: RecurringWhen; asked: unknown } {
  const { field, words } = rhythm
  const { now } = at
  if (field !== 'cron') complainAboutTwice(complaints, job, rhythm)
  const timezone = readZone(complaints, job.timezone)
  const given: Given = {
    startAt: job.startAt === undefined ? undefined : readInstant(complaints, 'startAt', job.startAt, now),
    endAt: job.endAt === undefined ? undefined : readInstant(complaints, 'endAt', job.endAt, now),
  }
  const startAt = given.startAt ?? reached(complaints, field, rhythm.startAt, now)
  const endAt = given.endAt ?? reached(complaints, field, rhythm.endAt, now)
  const schedule = specOf(rhythm, timezone, startAt, at.anchor)
  if (endAt !== undefined) schedule.endAt = endAt
  if (job.exclude !== undefined || job.onExcluded !== undefined) addExclusions(complaints, schedule, job, now)
  if (job.catchUp !== undefined) addCatchUp(complaints, schedule, job.catchUp)
  if (job.dst !== undefined) addDst(complaints, schedule, job.dst)
  const when: RecurringWhen = {
    kind: 'recurring',
    schedule,
    askedAt: now,
    overlap: job.overlap === undefined ? DEFAULT_OVERLAP : readOverlap(complaints, job.overlap),
    jitterMs: job.jitter === undefined ? 0 : (readClockMs(complaints, 'jitter', job.jitter, 0, DAY_MS) ?? 0),
    maxRuns: job.maxRuns === undefined ? (rhythm.maxRuns ?? null) : readMaxRuns(complaints, job.maxRuns),
  }
  if (words !== undefined) when.words = words
  if (complaints.list.length === 0) complainAboutNever(complaints, { schedule, rhythm, startAt, endAt, now })
  return { when, asked: field === 'cron' ? schedule : askedOf(schedule, rhythm, given) }
}

interface Given {
  startAt: Instant | undefined
  endAt: Instant | undefined
}

function specOf(
  { beat, count }: Rhythm,
  timezone: string,
  startAt: Instant | undefined,
  anchor: Instant,
): ScheduleSpec {
  if ('cron' in beat)
    return startAt === undefined ? { cron: beat.cron, timezone } : { cron: beat.cron, timezone, startAt }
  const spec = { every: beat.every, timezone, anchor: startAt ?? anchor }
  return count === undefined ? spec : { ...spec, count }
}

/** What was asked for, without the clock: of words the words, of an interval without a start none. */
function askedOf(schedule: ScheduleSpec, { words, startAt }: Rhythm, given: Given): unknown {
  if (words === undefined) return { ...schedule, anchor: given.startAt ?? startAt ?? null }
  const { timezone, exclude, onExcluded, catchUp } = schedule
  const dst = 'cron' in schedule ? schedule.dst : undefined
  return { when: words.text, ...given, timezone, exclude, onExcluded, catchUp, dst }
}

/** A bound that the rhythm has already cannot be given beside it. */
function complainAboutTwice(complaints: Complaints, job: Record<string, unknown>, rhythm: Rhythm): void {
  const { field, words, startAt, endAt, count } = rhythm
  const where = field === 'when' ? 'the words of when' : 'the repeating interval'
  const said = words?.says ?? []
  const has = {
    startAt: field === 'every' ? startAt !== undefined : said.includes('startAt'),
    endAt: field === 'every' ? endAt !== undefined : said.includes('endAt'),
    maxRuns: field === 'every' ? count !== undefined : said.includes('maxRuns'),
  }
  for (const [bound, isSaid] of Object.entries(has)) {
    if (isSaid && job[bound] !== undefined) complaints.add(bound, `is said by ${where} already: leave one of them out`)
  }
}

function reached(complaints: Complaints, path: string, at: Instant | undefined, now: Instant): Instant | undefined {
  return at === undefined ? undefined : withinReach(complaints, path, at, now)
}

function complainAboutNever(
  complaints: Complaints,
  found: {
    schedule: ScheduleSpec
    rhythm: Rhythm
    startAt: Instant | undefined
    endAt: Instant | undefined
    now: Instant
  },
): void {
  const { schedule, rhythm, startAt, endAt, now } = found
  const path = rhythm.endAt === undefined ? 'endAt' : rhythm.field
  const which = rhythm.endAt === undefined ? '' : 'its end '
  if (endAt !== undefined && startAt !== undefined && endAt <= startAt) {
    complaints.add(path, `${which}must be later than ${rhythm.startAt === startAt ? 'its start' : 'startAt'}`)
  } else if (endAt !== undefined && endAt <= now) {
    complaints.add(path, `${which}lies in the past`)
  } else if (isBounded(schedule)) {
    // What needs its job or tenant to be known is looked at once they are.
    const alone = aloneOf(schedule)
    const complaint = alone && whyNever(alone, now)
    if (complaint) complaints.add(complaint.path === 'endAt' ? path : complaint.path, complaint.message)
  }
}

/** Others fire sooner or later: their expressions have proved to. */
const isBounded = (schedule: ScheduleSpec): boolean =>
  schedule.endAt !== undefined ||
  schedule.exclude !== undefined ||
  ('every' in schedule && schedule.count !== undefined)

function readOverlap(complaints: Complaints, value: unknown): Overlap {
  return readChoice(complaints, 'overlap', value, OVERLAPS) ?? DEFAULT_OVERLAP
}

function readMaxRuns(complaints: Complaints, value: unknown): number | null {
  return readInteger(complaints, 'maxRuns', value, 1, MAX_RUNS) ?? null
}

function addCatchUp(complaints: Complaints, schedule: ScheduleSpec, value: unknown): void {
  const record = readRecord(complaints, 'catchUp', value, ['policy', 'window', 'max'])
  if (record === undefined) return
  const { policy, window, max } = record
  const usual = DEFAULT_CATCH_UP
  const catchUp: CatchUp = {
    policy:
      policy === undefined ? usual.policy : (readChoice(complaints, 'catchUp.policy', policy, CATCH_UPS) ?? 'latest'),
    windowMs:
      window === undefined
        ? usual.windowMs
        : (readClockMs(complaints, 'catchUp.window', window, 0, YEAR_MS) ?? usual.windowMs),
    max: max === undefined ? usual.max : (readInteger(complaints, 'catchUp.max', max, 1, 100_000) ?? usual.max),
  }
  const isUsual = catchUp.policy === usual.policy && catchUp.windowMs === usual.windowMs && catchUp.max === usual.max
  if (!isUsual) schedule.catchUp = catchUp
}
