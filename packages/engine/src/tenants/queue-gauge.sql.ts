import { BelfryError } from '../errors.ts'
import { DELIVERY, KEYED, RUN_STATE } from '../job/states.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { numbers } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const ready = (delivery: string): string =>
  `belfry.runs r where r.queue_id = u.queue_id and r.state = ${RUN_STATE.ready} and r.delivery ${delivery}`
const KINDS = [`= ${DELIVERY.at_least_once}`, `= ${DELIVERY.at_most_once}`, `>= ${KEYED}`]

/**
 * Runs that wait to be started: ready ones, by the index of each kind, and those that wait for a slot of their key; no further than
 * the limit and one more. And since when the next one of each level has been due.
 */
const MEASURE = statement(
  'measure_queues',
  `select u.queue_id,
     ${KINDS.map((kind) => `(select count(*)::int from (select from ${ready(kind)} limit u.bound) r)`).join('\n       + ')}
       + (select count(*)::int from (select from belfry.runs r where r.queue_id = u.queue_id and r.queue_id > 0 and r.state = ${RUN_STATE.limited} limit u.bound) r),
     (select min(h.due_at) from generate_series(0, 9) as p (priority) cross join lateral (
        ${KINDS.map((kind) => `(select r.due_at from ${ready(kind)} and r.priority = p.priority order by r.turn limit 1)`).join('\n        union all\n        ')}) h)
   from unnest($1::int[], $2::bigint[]) as u (queue_id, bound)`,
)

const MEASURE_EVERY_MS = 1_000
/** Counting may take this share of the time, so that a large limit is counted less often. */
const SHARE_OF_TIME = 20
const MAX_REMEMBERED = 10_000
/** What a caller is told to wait: within these bounds, and this where it is not known how fast the queue goes. */
const SHORTEST_WAIT_S = 1
const LONGEST_WAIT_S = 60
const USUAL_WAIT_S = 5

interface Limits {
  maxDepth: number | null
  maxAgeMs: number | null
}

interface Measure {
  depth: number
  /** Since when the next run has been due; null: none waits. */
  oldestDueAt: Instant | null
  measuredAt: Instant
  measureAgainAt: Instant
  /** What this node has let in since it was measured. */
  admitted: number
  /** Runs that leave it in a second, as the last two measures say. */
  leavingPerSecond: number
}

/** What a call would add to a queue. */
export interface Wanted {
  queueId: number
  queue: string
  /** One-offs, whatever their time. */
  jobs: number
  /** Those of them that are due at once. */
  due: number
}

export interface QueueGaugeDeps {
  db: Queryable
  clock: Clock
  settings: { isEmpty: boolean; of(queueId: number): Limits }
}

/**
 * Keeps queues within their limits without counting at every create: a measure that is a second old, and what this node has let in
 * since. So a limit may be passed by what all nodes let in within that second; it is a bound, not an exact limit.
 */
export class QueueGauge {
  readonly #deps: QueueGaugeDeps
  readonly #measures = new Map<number, Measure>()
  #measuring: Promise<void> = Promise.resolve()

  constructor(deps: QueueGaugeDeps) {
    this.#deps = deps
  }

  /** No queue has a limit. */
  get isIdle(): boolean {
    return this.#deps.settings.isEmpty
  }

  /** Measures those of the queues that have limits, unless that was done a moment ago. Before `admit`, outside of any transaction. */
  async refresh(queueIds: Iterable<number>): Promise<void> {
    const { settings } = this.#deps
    if (settings.isEmpty) return
    const limited = [...new Set(queueIds)].filter((queueId) => isLimited(settings.of(queueId)))
    if (limited.every((queueId) => !this.#isOld(queueId))) return
    // One after the other: whoever comes meanwhile mostly finds that it has been done.
    const mine = this.#measuring.then(() => this.#measure(limited.filter((queueId) => this.#isOld(queueId))))
    this.#measuring = mine.catch(() => {})
    await mine
  }

  /** Throws `queue_full` if one of the queues may not have so many more; then nothing is counted as let in. */
  admit(wanted: readonly Wanted[]): void {
    const { settings, clock } = this.#deps
    if (settings.isEmpty) return
    const now = clock.now()
    const limited = wanted.flatMap((want) => {
      const measure = this.#measures.get(want.queueId)
      const limits = settings.of(want.queueId)
      return measure && want.jobs > 0 && isLimited(limits) ? [{ want, measure, limits }] : []
    })
    for (const { want, measure, limits } of limited) mustHaveRoom(want, measure, limits, now)
    for (const { want, measure } of limited) measure.admitted += want.due
  }

  #isOld(queueId: number): boolean {
    const known = this.#measures.get(queueId)
    return known === undefined || this.#deps.clock.now() >= known.measureAgainAt
  }

  async #measure(queueIds: readonly number[]): Promise<void> {
    if (queueIds.length === 0) return
    const { db, clock, settings } = this.#deps
    const began = clock.now()
    const bounds = queueIds.map((queueId) => (settings.of(queueId).maxDepth ?? 0) + 1)
    const rows = await db.query<[number, number, Instant | null]>(MEASURE, [numbers(queueIds), numbers(bounds)])
    const now = clock.now()
    const measureAgainAt = began + Math.max(MEASURE_EVERY_MS, SHARE_OF_TIME * (now - began))
    if (this.#measures.size + rows.length > MAX_REMEMBERED) this.#measures.clear()
    for (const [queueId, depth, oldestDueAt] of rows) {
      const before = this.#measures.get(queueId)
      const left = before ? before.depth + before.admitted - depth : 0
      const leavingPerSecond = before ? Math.max(0, (left * 1_000) / Math.max(1, now - before.measuredAt)) : 0
      const measure = { depth, oldestDueAt, measuredAt: now, measureAgainAt, admitted: 0, leavingPerSecond }
      this.#measures.set(queueId, measure)
    }
  }
}

const isLimited = ({ maxDepth, maxAgeMs }: Limits): boolean => maxDepth !== null || maxAgeMs !== null

function mustHaveRoom({ queue, jobs }: Wanted, measure: Measure, { maxDepth, maxAgeMs }: Limits, now: Instant): void {
  const depth = measure.depth + measure.admitted
  if (maxDepth !== null && depth + jobs > maxDepth) {
    const over = depth + jobs - maxDepth
    // Whoever was told to come again would do so for ever.
    if (jobs > maxDepth)
      throw new BelfryError(
        'invalid_argument',
        `${jobs} jobs of one call never fit into the queue "${queue}", whose maxDepth is ${maxDepth}: send at most ${maxDepth} of them at a time`,
      )
    const many = jobs > 1 ? `, so ${jobs} more do not fit` : ''
    const wait = depth === 1 ? '1 run waits' : `${depth} runs wait`
    const message = `the queue "${queue}" is full: ${wait} in it, and its maxDepth is ${maxDepth}${many}`
    throw new BelfryError('queue_full', message, { retryAfterSeconds: waitFor(over, measure.leavingPerSecond) })
  }
  const ageMs = measure.oldestDueAt === null ? 0 : now - measure.oldestDueAt
  if (maxAgeMs !== null && ageMs > maxAgeMs) {
    const message = `the queue "${queue}" is late: its next run has waited for ${ageMs} ms, and its maxAge is ${maxAgeMs} ms`
    throw new BelfryError('queue_full', message, { retryAfterSeconds: USUAL_WAIT_S })
  }
}

function waitFor(over: number, perSecond: number): number {
  if (perSecond === 0) return USUAL_WAIT_S
  return Math.min(LONGEST_WAIT_S, Math.max(SHORTEST_WAIT_S, Math.ceil(over / perSecond)))
}
