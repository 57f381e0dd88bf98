import { readOriginLimit } from '../concurrency/origin-limits.sql.ts'
import type { Limits } from '../concurrency/shared-limits.sql.ts'
import { readWaitsFor, type WaitsFor } from '../dependencies/waits-for.sql.ts'
import { readCircuit } from '../executors/http/circuit-store.sql.ts'
import { gateKeyOf } from '../job/gate-key.ts'
import { runIdOf, shardOfJob } from '../job/ids.ts'
import { nameOf, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { localTimeOf } from '../schedule/local-time.ts'
import type { Queryable } from '../store/database.ts'
import { canceledBy, overlappedWith, readDayName } from './explain-doers.sql.ts'
import { type ExplainedParent, readParent } from './explain-parent.sql.ts'
import { pauseOf, pauseReasonOf, readPauses } from './explain-pauses.sql.ts'
import { sentenceOf, type Unsaid } from './explain-sentence.ts'
import { doerOf, formerNameOf, type InForce, readTimesOf } from './explain-timeline.ts'
import type { Judgement, Known } from './explain-verdict.ts'
import { type ReadyWait, readReadyWait } from './explain-waits.sql.ts'
import type { Doer, ExplainedRun, Explanation, Waits } from './explanation.ts'
import { limitInWords, readLimitedBy } from './limited-by.sql.ts'
import {
  attemptOf,
  attemptViewOf,
  causeOf,
  dateOf,
  failureClassOf,
  finalStatusOf,
  isFailure,
  type LimitedBy,
  liveStatusOf,
} from './run-view.ts'

export interface ExplainDeps {
  /** As the tenant reads. */
  db: Queryable
  /** For what no tenant may read by itself: circuits. */
  engineDb: Queryable
  tenantId: number
}

type Circuit = Waits['circuit']

/** Ready runs whose place in the queue is counted for one answer. */
const MAX_QUEUED = 20
const UTC = { cron: '* * * * *', timezone: 'UTC' }

/** Adds what takes another look, and the sentence. */
export async function explanationsOf(
  deps: ExplainDeps,
  jobId: string,
  known: Known,
  judgements: readonly Judgement[],
): Promise<Explanation[]> {
  const { db } = deps
  const shard = shardOfJob(jobId)
  const [overlaps, cancels, queued, circuit, days, waitsFor, pauses, limits, originLimit] = await Promise.all([
    overlappedWith(
      db,
      { shard, jobId },
      judgements.flatMap(({ at, reason, skip: { decidedAt } }) =>
        reason === 'overlap' && decidedAt !== null ? [{ at, decidedAt }] : [],
      ),
    ),
    cancelsOf(deps, jobId, known, judgements),
    queuedOf(deps, known.now, judgements),
    circuitOf(deps, known, judgements),
    dayNamesOf(deps, known, judgements),
    judgements.some(isDependent) ? readWaitsFor(db, jobId) : null,
    judgements.some(isAlive) ? readPauses(db, deps.tenantId, jobId, known.facts.definition.url) : [],
    limitsOf(db, jobId, known.now, judgements),
    judgements.some(isOriginLimited) ? originLimitOf(deps, known) : null,
  ])
  const parent = waitsFor && (await parentOf(db, waitsFor.jobs))
  const origin = originOf(known)
  return judgements.map((judged) => {
    const overlap = overlaps.get(judged.at)
    const by = cancels.get(judged.at) ?? judged.by
    const overlappedRun = overlap === undefined ? null : runIdOf(jobId, overlap)
    const waits = waitsOf(jobId, judged, queued.get(judged.at) ?? null, circuit)
    if (waits !== null && isDependent(judged)) waits.jobs = waitsFor
    if (waits !== null) waits.pause = pauseOf(judged, pauses)
    const limit = limits.get(judged.at)
    if (waits !== null && limit) waits.keyLimit = limitInWords(limit)
    const isFreed = isOriginLimited(judged) && originLimit === null
    const reason = isFreed ? 'snoozed' : readyReasonOf(judged, waits)
    return explanationOf(jobId, { ...judged, by, reason }, waits, {
      overlapped: overlappedRun,
      isOvertaken: overlap !== undefined && overlap > judged.at,
      dayName: days.get(judged.at) ?? null,
      origin,
      originLimit,
      isRateUsedUp: origin !== null && judged.live?.gateKey === gateKeyOf('rate', deps.tenantId, origin),
      parent,
    })
  })
}

const isDependent = ({ verdict, reason }: Judgement): boolean => verdict === 'waiting' && reason === 'dependency'

const isOriginLimited = ({ verdict, reason }: Judgement): boolean =>
  verdict === 'waiting' && reason === 'origin_limited'

/** The limit as it is now, which need not be the one that put the run aside. */
async function originLimitOf({ db, tenantId }: ExplainDeps, known: Known): Promise<Limits | null> {
  const origin = originOf(known)
  return origin === null ? null : readOriginLimit(db, tenantId, origin)
}

function originOf({ facts: { definition } }: Known): string | null {
  const { url } = definition
  return url === null || !URL.canParse(url) ? null : new URL(url).origin
}

/** The job that the sentence names of those that are waited for: one that did not succeed, or the first. */
async function parentOf(db: Queryable, jobs: WaitsFor['jobs']): Promise<ExplainedParent | null> {
  const named = jobs.find(({ hasFailed }) => hasFailed) ?? jobs[0]
  return named === undefined ? null : readParent(db, named.jobId)
}

/** Of runs that wait for their key: also of ready ones, which nobody has claimed since it was taken. */
async function limitsOf(
  db: Queryable,
  jobId: string,
  now: Instant,
  judgements: readonly Judgement[],
): Promise<Map<Instant, LimitedBy>> {
  const mayWait = judgements.filter(({ live }) => live?.state === RUN_STATE.limited || live?.state === RUN_STATE.ready)
  if (mayWait.length === 0) return new Map()
  return readLimitedBy(db, jobId, { nominalAts: mayWait.map(({ at }) => at), now })
}

const isAlive = ({ live }: Judgement): boolean => live !== null && live.state !== RUN_STATE.leased

/** What keeps a ready run waiting besides those before it. */
function readyReasonOf({ reason }: Judgement, waits: Waits | null): Judgement['reason'] {
  if (waits?.pause) return pauseReasonOf(waits.pause)
  if (reason !== 'ready') return reason
  if (waits?.queuePause != null) return 'queue_paused'
  if (waits?.queueLimit != null) return 'queue_limited'
  return waits?.keyLimit != null ? 'key_limited' : reason
}

/** A canceled job cancels its runs in the same instant; else somebody canceled the run alone, or emptied its queue. */
async function cancelsOf(
  { db, tenantId }: ExplainDeps,
  jobId: string,
  { facts }: Known,
  judgements: readonly Judgement[],
): Promise<Map<Instant, Doer>> {
  const found = new Map<Instant, Doer>()
  const alone: { at: Instant; runId: string; queue: string | null; ended: Instant }[] = []
  for (const { at, verdict, reason, attempts } of judgements) {
    const last = attempts.at(-1)
    if (verdict !== 'skipped' || reason !== 'canceled' || last === undefined) continue
    const ofJob = facts.changes.find((change) => change.action === 'cancel' && change.at === last.finishedAt)
    if (ofJob) found.set(at, doerOf(ofJob))
    else alone.push({ at, runId: runIdOf(jobId, at), queue: last.queue, ended: last.finishedAt })
  }
  const asked = alone.map(({ runId, queue, ended }) => ({ runId, queue, at: ended }))
  const doers = await canceledBy(db, tenantId, asked)
  for (const { at, runId } of alone) {
    const by = doers.get(runId)
    if (by) found.set(at, by)
  }
  return found
}

async function queuedOf(
  { db, engineDb, tenantId }: ExplainDeps,
  now: Instant,
  judgements: readonly Judgement[],
): Promise<Map<Instant, ReadyWait>> {
  const found = new Map<Instant, ReadyWait>()
  const ready = judgements.filter(({ reason, live }) => reason === 'ready' && live !== null).slice(0, MAX_QUEUED)
  for (const { at, live } of ready) {
    const wait = live && (await readReadyWait({ db, engineDb }, tenantId, live, now))
    if (wait) found.set(at, wait)
  }
  return found
}

async function circuitOf(
  { engineDb, tenantId }: ExplainDeps,
  known: Known,
  judgements: readonly Judgement[],
): Promise<Circuit> {
  const origin = originOf(known)
  if (origin === null || !judgements.some(isAlive)) return null
  const open = await readCircuit(engineDb, { tenantId, origin })
  return open && { origin, until: new Date(open.probeAt), reason: open.reason }
}

/** What the excluded days are called in their calendars. */
async function dayNamesOf(
  { db, tenantId }: ExplainDeps,
  { calendarChanges }: Known,
  judgements: readonly Judgement[],
): Promise<Map<Instant, string>> {
  const found = new Map<Instant, string>()
  for (const { at, rule } of judgements) {
    if (!rule?.day) continue
    const { calendar, date } = rule.day
    const former = formerNameOf(calendarChanges, calendar, date, at)
    const { name } = former ?? { name: await readDayName(db, tenantId, calendar, date) }
    if (name !== null) found.set(at, name)
  }
  return found
}

function waitsOf(jobId: string, judged: Judgement, queued: ReadyWait | null, circuit: Circuit): Waits | null {
  const { verdict, live, dueAt, attempts, behind } = judged
  if (verdict !== 'waiting') return null
  const last = attempts.at(-1)
  return {
    queue: live?.queue ?? null,
    until: live === null || live.state === RUN_STATE.waiting ? dateOf(dueAt) : null,
    ahead: queued?.ahead ?? null,
    isAheadComplete: queued?.isAheadComplete ?? true,
    expectedStartAt: dateOf(queued?.expectedStartAt ?? null),
    expectedStartNote: queued?.expectedStartNote ?? null,
    behind: behind === null ? null : runIdOf(jobId, behind),
    jobs: null,
    queuePause: queued?.queuePause ?? null,
    pause: null,
    keyLimit: null,
    queueLimit: queued?.queueLimit ?? null,
    circuit: live === null ? null : circuit,
    after:
      last === undefined
        ? null
        : {
            attempt: last.number,
            status: nameOf(OUTCOME, last.outcome) ?? 'unknown',
            failureClass: failureClassOf(last.failureClass),
            error: last.error,
          },
  }
}

type LookedUp = Pick<Unsaid, 'isOvertaken' | 'origin' | 'originLimit' | 'isRateUsedUp' | 'parent'> & {
  overlapped: string | null
  dayName: string | null
}

function explanationOf(
  jobId: string,
  judged: Judgement,
  waits: Waits | null,
  { overlapped, dayName, ...lookedUp }: LookedUp,
): Explanation {
  const { at, nominalAt, verdict, reason, inForce, dueAt, skip, by, nearest } = judged
  const spec = readTimesOf(inForce)?.spec ?? { ...UTC, timezone: unreadableZoneOf(inForce) }
  const rule = judged.rule && `${judged.rule.message}${dayName === null ? '' : ` (${dayName})`}`
  const found = {
    jobId,
    at: new Date(at),
    nominalAt: dateOf(nominalAt),
    local: localTimeOf(spec, nominalAt ?? at).local,
    timezone: spec.timezone,
    verdict,
    reason,
    version: reason === 'history_expired' || reason === 'not_created' ? null : inForce.version,
    dueAt: dateOf(dueAt),
    run: judged.live === null && judged.attempts.length === 0 ? null : explainedRunOf(jobId, judged),
    waits,
    skip:
      verdict !== 'skipped'
        ? null
        : {
            from: new Date(skip.from === 0 ? at : skip.from),
            to: new Date(skip.to === 0 ? at + 1 : skip.to),
            count: skip.count,
            decidedAt: dateOf(skip.decidedAt),
            overlappedWith: overlapped,
          },
    by: by === null ? null : { action: by.action, actor: by.actor, at: by.at, reason: by.reason },
    nearest: nearest && { before: dateOf(nearest.before), after: dateOf(nearest.after) },
  }
  return { ...found, sentence: sentenceOf({ ...found, ...lookedUp, rule, ended: judged.attempts }) }
}

const unreadableZoneOf = ({ times }: InForce): string =>
  times !== null && 'unreadable' in times ? times.timezone : UTC.timezone

function explainedRunOf(jobId: string, { at, live, attempts }: Judgement): ExplainedRun {
  const last = attempts.at(-1)
  const final = live === null ? attempts.findLast((attempt) => attempt.final) : undefined
  const began = attempts.find(({ leasedAt }) => leasedAt !== null)
  const startedAt = began ? (began.startedAt ?? began.leasedAt) : (live?.leasedAt ?? null)
  return {
    id: runIdOf(jobId, at),
    status: live ? liveStatusOf(live.state) : final ? finalStatusOf(final.outcome) : 'failed',
    cause: causeOf(live?.cause ?? last?.cause ?? -1),
    dueAt: new Date(live?.dueAt ?? last?.dueAt ?? at),
    attempt: Math.max(live?.attempt ?? 0, ...attempts.map(attemptOf)),
    failures: live?.failures ?? attempts.filter(isFailure).length,
    latenessMs: startedAt === null ? null : Math.max(0, startedAt - at),
    startedAt: dateOf(live?.state === RUN_STATE.leased ? live.leasedAt : startedAt),
    finishedAt: dateOf(final?.finishedAt ?? null),
    failureClass: failureClassOf(last?.failureClass ?? null),
    error: last?.error ?? null,
    attempts: attempts.map(attemptViewOf),
  }
}
