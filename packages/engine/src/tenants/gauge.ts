import { BelfryError, type ErrorCode } from '../errors.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { setLast } from '../runtime/maps.ts'

const MEASURE_EVERY_MS = 1_000
/** Counting may take this share of the time, so that a large limit is counted less often. */
const SHARE_OF_TIME = 20
const MAX_REMEMBERED = 10_000
/** What a caller is told to wait: within these bounds, and this where it is not known how fast the place goes. */
const SHORTEST_WAIT_S = 1
const LONGEST_WAIT_S = 60
const USUAL_WAIT_S = 5

/** How much may wait in a place, and for how long; null: no limit. */
export interface Limits {
  maxDepth: number | null
  maxAgeMs: number | null
}

/** A place that has limits, as it is to be measured. */
export interface Asked {
  id: number
  limits: Limits
}

/** What was found in a place. No more is counted than shows that it is over its limit. */
export interface Reading {
  id: number
  depth: number
  /** Since when the run has been due that its age goes by; null: none waits. */
  oldestDueAt: Instant | null
}

/** As the database answers it. */
export type ReadingRow = [id: number, depth: number, oldestDueAt: Instant | null]

export const readingOf = ([id, depth, oldestDueAt]: ReadingRow): Reading => ({ id, depth, oldestDueAt })

/** What a call would add to a place. */
export interface Wanted {
  id: number
  name: string
  /** One-offs, whatever their time. */
  jobs: number
  /** Those of them that are due at once. */
  due: number
}

/** How whoever is refused is told. */
export interface Refusal {
  code: ErrorCode
  neverFits(wanted: Wanted, maxDepth: number): string
  /** `waiting` is such as "5 runs wait". */
  full(name: string, waiting: string, maxDepth: number): string
  late(name: string, ageMs: number, maxAgeMs: number): string
}

export interface GaugeDeps {
  clock: Clock
  limits: { isEmpty: boolean; of(id: number): Limits }
  measure(places: readonly Asked[]): Promise<Reading[]>
  refusal: Refusal
}

interface Measure extends Reading {
  measuredAt: Instant
  measureAgainAt: Instant
  /** What this node has let in since it was measured. */
  admitted: number
  /** Runs that leave it in a second, as the last two measures say. */
  leavingPerSecond: number
}

/**
 * Keeps places where runs wait within their limits without counting at every create: a measure that is a second old, and what this
 * node has let in since. So a limit may be passed by what all nodes let in within that second; it is a bound, not an exact limit.
 */
export class Gauge {
  readonly #deps: GaugeDeps
  readonly #measures = new Map<number, Measure>()
  readonly #measuring = new Map<number, Promise<void>>()

  constructor(deps: GaugeDeps) {
    this.#deps = deps
  }

  /** No place has a limit. */
  get isIdle(): boolean {
    return this.#deps.limits.isEmpty
  }

  /** Measures those of the places that have limits, unless that was done a moment ago. Outside of any transaction. */
  async refresh(ids: Iterable<number>): Promise<void> {
    if (this.isIdle) return
    const old = [...new Set(ids)].filter((id) => isLimited(this.#deps.limits.of(id)) && this.#isOld(id))
    const fresh = old.filter((id) => !this.#measuring.has(id))
    if (fresh.length > 0) this.#begin(fresh)
    // Whoever comes while a place is being measured waits for that, and nobody waits for places that are not his.
    await Promise.all(new Set(old.map((id) => this.#measuring.get(id))))
  }

  /** Throws if one of the places may not have so many more; counts nothing. */
  mustHaveRoom(wanted: readonly Wanted[]): void {
    const { limits, clock } = this.#deps
    const now = clock.now()
    for (const want of wanted) {
      const measure = this.#measures.get(want.id)
      if (measure && want.jobs > 0) this.#mustFit(want, measure, limits.of(want.id), now)
    }
  }

  /** Counts what comes in, for which there was room everywhere. */
  letIn(wanted: readonly Wanted[]): void {
    for (const { id, due } of wanted) {
      const measure = this.#measures.get(id)
      if (measure) measure.admitted += due
    }
  }

  #isOld(id: number): boolean {
    const known = this.#measures.get(id)
    return known === undefined || this.#deps.clock.now() >= known.measureAgainAt
  }

  #begin(ids: readonly number[]): void {
    const measuring = this.#measure(ids)
      .catch((error: unknown) => {
        // What was found before is too old to refuse anybody.
        for (const id of ids) this.#measures.delete(id)
        throw error
      })
      .finally(() => {
        for (const id of ids) this.#measuring.delete(id)
      })
    for (const id of ids) this.#measuring.set(id, measuring)
  }

  async #measure(ids: readonly number[]): Promise<void> {
    const { clock, limits, measure } = this.#deps
    const began = clock.now()
    const readings = await measure(ids.map((id) => ({ id, limits: limits.of(id) })))
    const now = clock.now()
    const measureAgainAt = began + Math.max(MEASURE_EVERY_MS, SHARE_OF_TIME * (now - began))
    for (const reading of readings) {
      const before = this.#measures.get(reading.id)
      const left = before ? before.depth + before.admitted - reading.depth : 0
      const leavingPerSecond = before ? Math.max(0, (left * 1_000) / Math.max(1, now - before.measuredAt)) : 0
      const measured = { ...reading, measuredAt: now, measureAgainAt, admitted: 0, leavingPerSecond }
      setLast(this.#measures, reading.id, measured, MAX_REMEMBERED)
    }
  }

  #mustFit(want: Wanted, measure: Measure, { maxDepth, maxAgeMs }: Limits, now: Instant): void {
    const { refusal } = this.#deps
    const { name, jobs } = want
    const depth = measure.depth + measure.admitted
    if (maxDepth !== null && depth + jobs > maxDepth) {
      // Whoever was told to come again would do so for ever.
      if (jobs > maxDepth) throw new BelfryError('invalid_argument', refusal.neverFits(want, maxDepth))
      const many = jobs > 1 ? `, so ${jobs} more do not fit` : ''
      const message = `${refusal.full(name, waitingOf(depth, maxDepth), maxDepth)}${many}`
      const retryAfterSeconds = waitFor(depth + jobs - maxDepth, measure.leavingPerSecond)
      throw new BelfryError(refusal.code, message, { retryAfterSeconds })
    }
    const ageMs = measure.oldestDueAt === null ? 0 : now - measure.oldestDueAt
    if (maxAgeMs !== null && ageMs > maxAgeMs)
      throw new BelfryError(refusal.code, refusal.late(name, ageMs, maxAgeMs), { retryAfterSeconds: USUAL_WAIT_S })
  }
}

const isLimited = ({ maxDepth, maxAgeMs }: Limits): boolean => maxDepth !== null || maxAgeMs !== null

/** Beyond the limit nobody has counted on. */
function waitingOf(depth: number, maxDepth: number): string {
  const [most, words] = depth > maxDepth ? [maxDepth, 'more than '] : [depth, '']
  return `${words}${most} ${most === 1 ? 'run waits' : 'runs wait'}`
}

function waitFor(over: number, perSecond: number): number {
  if (perSecond === 0) return USUAL_WAIT_S
  return Math.min(LONGEST_WAIT_S, Math.max(SHORTEST_WAIT_S, Math.ceil(over / perSecond)))
}
