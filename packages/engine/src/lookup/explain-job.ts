import type { Calendar } from '../job/definition.ts'
import { createdAtOf, isJobId, shardOfJob } from '../job/ids.ts'
import { Breather } from '../runtime/breather.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { DAY_MS, MINUTE_MS } from '../schedule/duration.ts'
import { END_OF_TIME } from '../schedule/schedule.ts'
import { limitOf, type Page, type PageRequest, readCursor, TIMESTAMP, writeCursor } from '../store/page.ts'
import { firstNominal, meantBy, nominalTimes } from './explain-at.ts'
import { areManyDays, LONGEST_MS } from './explain-days.ts'
import { calendarChanges } from './explain-doers.sql.ts'
import { type Facts, readFacts } from './explain-facts.sql.ts'
import { calendarNames, timelineOf } from './explain-timeline.ts'
import { type Judgement, judge, type Known } from './explain-verdict.ts'
import { type ExplainDeps, explanationsOf } from './explain-view.ts'
import type { Explanation } from './explanation.ts'
import type { Range } from './filter.ts'

export interface ExplainRequest extends ExplainDeps {
  now: Instant
  /** How long the answer takes so far. */
  clock: Pick<Clock, 'now'>
  historyDays: number
  /** The calendars of these names, as they are now. */
  calendarsOf(names: readonly string[]): Promise<ReadonlyMap<string, Calendar>>
}

/** What became of the nominal time that a person means by an instant, or will. Null: there is no such job. */
export async function explainAt(request: ExplainRequest, jobId: string, at: Instant): Promise<Explanation | null> {
  const known = await readKnown(request, jobId, meantBy(at))
  return known && explainKnown(request, jobId, known, { at, orElse: at })
}

/** The same for now: of a job that runs once, its run that is alive, or else its time to come or its last run; else this minute. */
export async function explainNow(request: ExplainRequest, jobId: string): Promise<Explanation | null> {
  const minute = Math.floor(request.now / MINUTE_MS) * MINUTE_MS
  const known = await readKnown(request, jobId, meantBy(minute))
  if (known === null) return null
  const { isOneOff, live, timer, attempts } = known.facts
  const only = live.at(-1)?.nominalAt ?? timer?.nominalAt ?? attempts.at(-1)?.nominalAt
  const at = (isOneOff ? only : null) ?? minute
  // A job that was made in this minute is not asked about the time before it.
  return explainKnown(request, jobId, known, { at, orElse: Math.max(at, known.created) })
}

/** The nominal time that is meant by `at`; where there is none, the instant `orElse`. */
async function explainKnown(
  request: ExplainRequest,
  jobId: string,
  known: Known,
  { at, orElse }: { at: Instant; orElse: Instant },
): Promise<Explanation | null> {
  const meant = meantBy(at)
  const exact = firstNominal(known, { from: at, to: at + 1 })
  const nominalAt = exact ?? firstNominal(known, meant) ?? orElse
  const judged = await judgedWith(request, jobId, known, nominalAt)
  const [explanation] = await explanationsOf(request, jobId, known, [{ ...judged, at: nominalAt }])
  return explanation ? { ...explanation, at: new Date(at) } : null
}

/**
 * Every nominal time in a range, oldest first, a page at a time; a page that takes too long is a shorter one. Null: there is
 * no such job.
 */
export async function explainRange(
  request: ExplainRequest,
  jobId: string,
  range: Range,
  page: PageRequest,
): Promise<Page<Explanation> | null> {
  const limit = limitOf(page)
  const breather = new Breather(request.clock)
  const [reached] = readCursor(page, [TIMESTAMP]) ?? []
  const from = reached === undefined ? range.from : Math.max(range.from, Number(reached))
  const known = await readKnown(request, jobId, { from, to: range.to })
  if (known === null) return null
  const end = Math.min(range.to, END_OF_TIME)
  // What is past the horizon has been read only in part, and days past a year not at all; the next page begins there.
  const begin = Math.max(from, known.created)
  const to = Math.min(
    end,
    Math.max(from + 1, known.facts.horizon),
    begin + (known.hasManyDays ? LONGEST_MS : Number.POSITIVE_INFINITY),
  )
  const judgements: Judgement[] = []
  let next: Instant | null = to < end ? to : null
  for (const { at, reached } of nominalTimes(known, { from, to })) {
    if (judgements.length === limit && at !== null) {
      next = at
      break
    }
    if (at !== null) judgements.push(await judgedWith(request, jobId, known, at))
    await breather.breathe()
    if (!breather.isSpent) continue
    const after = at === null ? reached : at + 1
    if (after < end) next = after
    break
  }
  const items = await explanationsOf(request, jobId, known, judgements)
  return { items, nextCursor: next === null ? null : writeCursor([next]) }
}

async function readKnown(request: ExplainRequest, jobId: string, window: Range): Promise<Known | null> {
  if (!isJobId(jobId)) return null
  const { db, tenantId, now, historyDays } = request
  const created = createdAtOf(jobId)
  const job = { shard: shardOfJob(jobId), jobId, tenantId, created: created - DAY_MS }
  let facts = await readFacts(db, { ...job, ...window })
  // A one-off has one time, and who asks about another is told that one.
  if (facts?.isOneOff) facts = await readFacts(db, { ...job, from: Number.NEGATIVE_INFINITY, to: END_OF_TIME })
  if (facts === null) return null
  const calendars = await calendarsOf(request, facts, window.from)
  // Before a job was created it had no times. Its first one may be when it was asked for, a moment before it got its id.
  const begun = Math.min(created, facts.timer?.nominalAt ?? created)
  const asked = { from: Math.max(window.from, begun), to: window.to }
  const befores = calendars.changes.flatMap(({ before }) => before ?? [])
  const hasManyDays = areManyDays([...calendars.now.values(), ...befores])
  const timeline = timelineOf(facts, jobId, calendars, hasManyDays ? asked : null)
  const historySince = Math.floor(now / DAY_MS) * DAY_MS - historyDays * DAY_MS
  return { facts, timeline, calendarChanges: calendars.changes, hasManyDays, created: begun, now, historySince }
}

async function calendarsOf(request: ExplainRequest, facts: Facts, since: Instant) {
  const names = calendarNames(facts)
  const [now, changes] = await Promise.all([
    request.calendarsOf(names),
    calendarChanges(request.db, request.tenantId, names, since),
  ])
  return { now, changes }
}

/**
 * A job is planned anew a moment after its calendar has changed. What was decided in between went by the days before, so
 * a time of which nothing is recorded is looked at with those too.
 */
const REPLANNED_WITHIN_MS = 600_000

async function judgedWith(request: ExplainRequest, jobId: string, known: Known, at: Instant): Promise<Judgement> {
  const judged = judge(at, known)
  if (judged.reason !== 'nothing_recorded' || calendarNames(known.facts).length === 0) return judged
  const since = at - REPLANNED_WITHIN_MS
  const earlier = await calendarsOf(request, known.facts, since)
  const before = earlier.changes.filter((change) => change.at < at).map((change) => ({ ...change, at: at + 1 }))
  if (before.length === 0) return judged
  const asked = { from: at, to: at + 1 }
  const timeline = timelineOf(known.facts, jobId, { now: earlier.now, changes: before }, asked)
  const again = judge(at, { ...known, timeline })
  return again.verdict === 'never' ? again : judged
}
