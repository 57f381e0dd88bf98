import { type Complaints, readText } from '../input/read-fields.ts'
import type { Words } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { clockMs, DAY_MS } from '../schedule/duration.ts'
import { readWhen, type UnderstoodText } from '../schedule/english/read-when.ts'
import { readInstant, readZone, withinReach } from './understand-bounds.ts'
import { type RecurringWhen, understandRecurring } from './understand-recurring.ts'
import { readCron, readEvery, rhythmOfWords } from './understand-rhythm.ts'

export type When = { kind: 'now' } | { kind: 'once'; at: Instant; words?: Words } | RecurringWhen

/** `asked` is what was said, without the clock: the same request sent later is the same request. */
export interface UnderstoodWhen {
  when: When
  asked: unknown
}

export interface WhenContext {
  now: Instant
  /** What an interval without a start of its own is counted from; now, unless it was said before. */
  anchor?: Instant
  /** Words that were understood before keep their meaning, whatever the clock says now. */
  known?: { text: string; timezone: string; understood: UnderstoodText }
}

export const NOW: UnderstoodWhen = { when: { kind: 'now' }, asked: null }
export const KINDS = ['runAt', 'delay', 'cron', 'every', 'when'] as const
const ONLY_RECURRING = [
  ...(['startAt', 'endAt', 'maxRuns', 'overlap', 'catchUp', 'jitter', 'exclude', 'onExcluded', 'dst'] as const),
]
/** All that says when a job runs. */
export const WHEN_FIELDS = [...KINDS, 'timezone', ...ONLY_RECURRING] as const
const YEAR_MS = 366 * DAY_MS
const MAX_WORDS = 200

export function understandWhen(
  complaints: Complaints,
  job: Record<string, unknown>,
  context: WhenContext,
): UnderstoodWhen {
  const { runAt, delay, cron, every, when } = job
  // Written out, for every job comes by here, and most of them say nothing of all this.
  if (when === undefined && cron === undefined && every === undefined) {
    if (job.timezone !== undefined || saysRecurring(job)) complainAboutOnce(complaints, job)
    if (runAt === undefined && delay === undefined) return NOW
    if (runAt === undefined) return understandDelay(complaints, delay, context.now)
    if (delay !== undefined) complainAboutSeveral(complaints, job)
    return understandRunAt(complaints, runAt, context.now)
  }
  complainAboutSeveral(complaints, job)
  const at = { now: context.now, anchor: context.anchor ?? context.now }
  if (cron !== undefined) return understandRecurring(complaints, job, readCron(complaints, cron), at)
  if (every !== undefined) return understandRecurring(complaints, job, readEvery(complaints, every), at)
  return understandWords(complaints, job, context)
}

const saysRecurring = (job: Record<string, unknown>): boolean =>
  job.startAt !== undefined ||
  job.endAt !== undefined ||
  job.maxRuns !== undefined ||
  job.overlap !== undefined ||
  job.catchUp !== undefined ||
  job.jitter !== undefined ||
  job.exclude !== undefined ||
  job.onExcluded !== undefined ||
  job.dst !== undefined

function complainAboutOnce(complaints: Complaints, job: Record<string, unknown>): void {
  if (job.timezone !== undefined) {
    complaints.add('timezone', 'only makes sense for a recurring job, or beside when: an instant has its offset')
  }
  complainAboutRecurring(complaints, job)
}

function complainAboutRecurring(complaints: Complaints, job: Record<string, unknown>): void {
  for (const field of ONLY_RECURRING) {
    if (job[field] === undefined) continue
    const suggestion = field === 'startAt' ? 'runAt' : undefined
    complaints.add(field, 'only makes sense for a recurring job, one with cron or every', suggestion)
  }
}

function complainAboutSeveral(complaints: Complaints, job: Record<string, unknown>): void {
  let first: string | undefined
  let second: string | undefined
  for (const kind of KINDS) {
    if (job[kind] === undefined) continue
    if (first === undefined) first = kind
    else second ??= kind
  }
  if (second === undefined) return
  if (first === 'runAt' && (second === 'cron' || second === 'every')) {
    complaints.add('runAt', `cannot stand beside ${second}: startAt says when a recurring job begins`, 'startAt')
  } else {
    complaints.add(second, `cannot stand beside ${first}: give exactly one of ${KINDS.join(', ')}`)
  }
}

function understandRunAt(complaints: Complaints, value: unknown, now: Instant): UnderstoodWhen {
  const at = readInstant(complaints, 'runAt', value, now)
  if (at === undefined) return NOW
  if (at < now - YEAR_MS) complaints.add('runAt', 'lies more than a year in the past')
  return { when: { kind: 'once', at }, asked: { at } }
}

function understandDelay(complaints: Complaints, value: unknown, now: Instant): UnderstoodWhen {
  const delayMs = complaints.read('delay', () => clockMs(value))
  if (delayMs === undefined) return NOW
  return { when: delayMs === 0 ? NOW.when : { kind: 'once', at: now + delayMs }, asked: { delayMs } }
}

function understandWords(
  complaints: Complaints,
  job: Record<string, unknown>,
  { now, known }: WhenContext,
): UnderstoodWhen {
  const text = readText(complaints, 'when', job.when, MAX_WORDS)?.trim()
  const timezone = readZone(complaints, job.timezone)
  if (text === undefined) return NOW
  const understood =
    known?.text === text && known.timezone === timezone
      ? known.understood
      : complaints.read('when', () => readWhen(text, { now, timezone }))
  if (understood === undefined) return NOW
  if (understood.kind === 'recurring') {
    return understandRecurring(complaints, job, rhythmOfWords(complaints, text, understood), { now, anchor: now })
  }
  complainAboutRecurring(complaints, job)
  const at = withinReach(complaints, 'when', understood.at, now) ?? now
  const words: Words = timezone === 'UTC' ? { text } : { text, timezone }
  return { when: { kind: 'once', at, words }, asked: { when: text, timezone } }
}
