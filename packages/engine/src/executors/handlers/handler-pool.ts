import { type Lease, LOST } from '../../leases/lease.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import { PlacedList } from '../../runtime/placed-list.ts'
import { WaitingLine } from '../../runtime/waiting-line.ts'
import { type AbortReason, ActiveRun, type RunServices } from './active-run.ts'
import type { End } from './judge.ts'

/** Performs a run, and says once how that ended. */
export type Perform = (run: ActiveRun, done: (end: End) => void) => void

export interface HandlerPoolDeps {
  clock: Clock
  services: RunServices
  /** The handler has ended, one way or another. */
  onEnd(run: ActiveRun, end: End): void
  /** There may be room for more. */
  onRoom(): void
}

/** What is leased ahead of free slots is what the pool performs in this time. */
const PREFETCH_MS = 80
const MAX_PREFETCH = 4_000
const RATE_WINDOW_MS = 100
/** So long a due run may wait for a slot instead of going through the ready runs. */
const MOMENT_MS = 200
const SMOOTHING = 16
/** A claim that is worth its statement. */
const WORTH_CLAIMING = 120
/** What has waited here for so long goes back: another process may have a slot for it. */
const MAX_WAIT_MS = 1_000
/** For so long after something went back nothing is leased ahead of a slot. */
const CAREFUL_MS = 10_000
/** One slot in so many is kept for those who overtake, while such come: otherwise they wait for the end of a run each time. */
const SLOTS_PER_KEPT = 20
const KEPT_MS = 1_000

/**
 * The runs of one queue that this node performs in-process, at most `concurrency` at a time. Short work is leased ahead, as
 * much as the pool has lately finished in 80 ms; long work is not, since its rate is low.
 */
export class HandlerPool {
  readonly queueId: number
  readonly #perform: Perform
  readonly #concurrency: number
  readonly #deps: HandlerPoolDeps
  readonly #active = new PlacedList<ActiveRun>()
  #backlog = new WaitingLine<Lease>()
  #reserved = 0
  #prefetch = 0
  /** How long runs take of late, on average. */
  #usualMs = 0
  #endedInWindow = 0
  #windowStart: Instant
  #stopped = false
  #fillPlanned = false
  #reservedAt: Instant = Number.NEGATIVE_INFINITY
  /** The highest turn of what has begun. */
  #begunUpTo = Number.NEGATIVE_INFINITY
  #overtakenAt = Number.NEGATIVE_INFINITY
  #carefulUntil: Instant = Number.NEGATIVE_INFINITY
  /** Its queue is paused: what has begun goes on, nothing more is taken. */
  paused = false

  constructor(queueId: number, perform: Perform, concurrency: number, deps: HandlerPoolDeps) {
    this.queueId = queueId
    this.#perform = perform
    this.#concurrency = concurrency
    this.#deps = deps
    this.#windowStart = deps.clock.now()
  }

  get active(): Pick<PlacedList<ActiveRun>, 'size' | 'has' | typeof Symbol.iterator> {
    return this.#active
  }

  get waiting(): number {
    return this.#backlog.length
  }

  /** Slots in which a run could start this moment. */
  freeSlots(): number {
    if (this.#stopped || this.paused) return 0
    return Math.max(0, this.#concurrency - this.#active.size - this.waiting - this.#reserved)
  }

  /** How many more runs may be leased to this pool. */
  credit(): number {
    if (this.#stopped || this.paused) return 0
    return Math.max(0, this.#most - this.#active.size - this.waiting - this.#reserved)
  }

  /** Enough room for a claim that is worth its statement. */
  wantsMore(): boolean {
    const credit = this.credit()
    const most = this.#most
    return credit > 0 && (this.waiting === 0 || credit >= Math.max(most / 4, Math.min(WORTH_CLAIMING, most / 2)))
  }

  /** What is performed and what waits, together. */
  get #most(): number {
    const now = this.#deps.clock.now()
    const isLate = now - this.#windowStart > MAX_WAIT_MS
    return this.#concurrency + (isLate || now < this.#carefulUntil ? 0 : this.#prefetch)
  }

  /** Runs are short, and a due run was taken a moment ago. */
  hasRoomSoon(): boolean {
    if (this.#stopped || this.paused || this.#usualMs > MOMENT_MS) return false
    return this.#deps.clock.now() - this.#reservedAt <= MOMENT_MS
  }

  reserve(): void {
    this.#reserved++
    this.#reservedAt = this.#deps.clock.now()
  }

  unreserve(): void {
    this.#reserved--
  }

  accept(leases: readonly Lease[]): void {
    this.#add(leases)
    if (this.#fillPlanned) return
    this.#fillPlanned = true
    // Not in this turn: whoever leased these may send its next statement first, so that the database is not kept waiting.
    setImmediate(() => {
      this.#fillPlanned = false
      this.#fill()
    })
  }

  /** In order of turn: whoever came when others had much to do was leased after it, and starts before it. */
  #add(leases: readonly Lease[]): void {
    const { last } = this.#backlog
    const isBehind = last === undefined || leases.every((lease) => turnOf(lease) >= turnOf(last))
    const added = isBehind ? leases : [...this.takeWaiting(), ...leases].sort((a, b) => turnOf(a) - turnOf(b))
    for (const lease of added) this.#backlog.push(lease)
  }

  /** Leases that wait here for a slot; they are heartbeaten like the active ones. */
  waitingLeases(): Lease[] {
    return this.#backlog.toArray()
  }

  /** The turn of the lease that gets the next slot; null: none waits. */
  firstWaiting(): number | null {
    const next = this.#backlog.first
    return next === undefined ? null : turnOf(next)
  }

  /** Takes the waiting leases away: the pool will not start them. */
  takeWaiting(): Lease[] {
    const taken = this.waitingLeases()
    this.#backlog = new WaitingLine()
    return taken
  }

  /** Takes those away that have waited for too long. */
  takeOverdue(now: Instant): Lease[] {
    const isOverdue = ({ leasedAt }: Lease) => now - leasedAt >= MAX_WAIT_MS
    if (!this.waitingLeases().some(isOverdue)) return []
    const waiting = this.takeWaiting()
    for (const lease of waiting) if (!isOverdue(lease)) this.#backlog.push(lease)
    this.#carefulUntil = now + CAREFUL_MS
    return waiting.filter((lease) => isOverdue(lease) && lease.leaseUntil !== LOST)
  }

  /** The same of one run; null: its lease does not wait here. */
  takeWaitingOf(jobId: string, nominalAt: Instant): Lease | null {
    const isOfRun = (lease: Lease) => lease.jobId === jobId && lease.nominalAt === nominalAt
    const taken = this.waitingLeases().find(isOfRun)
    if (taken === undefined) return null
    for (const lease of this.takeWaiting()) if (lease !== taken) this.#backlog.push(lease)
    return taken
  }

  /** Starts nothing more. */
  stop(): void {
    this.#stopped = true
  }

  /** Gives the slot back although the handler has not ended: its lease is lost, or it ignores that it was aborted. */
  giveUp(run: ActiveRun, reason: AbortReason): void {
    run.abort(reason)
    if (reason === 'timeout' && !run.over) this.#deps.onEnd(run, STUCK)
    run.over = true
    if (this.#active.delete(run)) this.#fill()
  }

  /** Leases were renewed or lost: what waited for that goes on. */
  refill(): void {
    this.#fill()
  }

  #fill(): void {
    const now = this.#deps.clock.now()
    while (!this.#stopped && this.#active.size < this.#concurrency && this.#deps.clock.isTrusted) {
      const lease = this.#backlog.first
      if (lease === undefined) break
      // An expired lease may be another's by now: it waits until the keeper has renewed it, or found it lost.
      if (lease.leaseUntil <= now && lease.leaseUntil !== LOST) break
      if (this.#isKept(lease, now)) break
      this.#backlog.shift()
      if (lease.leaseUntil !== LOST) this.#start(lease, now)
    }
    if (this.wantsMore()) this.#deps.onRoom()
  }

  /**
   * Whether the slot is left free for whoever overtakes. Only where so much is leased ahead that slots are free again soon, and only by what
   * may be leased ahead.
   */
  #isKept({ turn, atMostOnce, limitKey }: Lease, now: Instant): boolean {
    if (turn !== undefined && turn < this.#begunUpTo) {
      this.#overtakenAt = now
      return false
    }
    this.#begunUpTo = turn ?? this.#begunUpTo
    if (atMostOnce || limitKey != null || this.#prefetch < this.#concurrency || now - this.#overtakenAt > KEPT_MS)
      return false
    return this.#active.size >= this.#concurrency - Math.floor(this.#concurrency / SLOTS_PER_KEPT)
  }

  #start(lease: Lease, now: Instant): void {
    const run = new ActiveRun(lease, this.#deps.services, now)
    this.#active.add(run)
    let hasReturned = false
    this.#perform(run, (end) => {
      // Not in this turn: what ends at once must not recurse through a long backlog.
      if (hasReturned) this.#end(run, end)
      else queueMicrotask(() => this.#end(run, end))
    })
    hasReturned = true
  }

  #end(run: ActiveRun, end: End): void {
    this.#usualMs += (this.#deps.clock.now() - run.startedAt - this.#usualMs) / SMOOTHING
    this.#measure()
    const wasActive = this.#active.delete(run)
    if (!run.over) this.#deps.onEnd(run, end)
    if (wasActive) this.#fill()
  }

  #measure(): void {
    this.#endedInWindow++
    if (this.#endedInWindow % 64 !== 0 && this.#endedInWindow > 1) return
    const now = this.#deps.clock.now()
    const elapsed = now - this.#windowStart
    if (elapsed < RATE_WINDOW_MS) return
    const rate = this.#endedInWindow / elapsed
    this.#prefetch = Math.min(MAX_PREFETCH, Math.round(rate * PREFETCH_MS))
    this.#endedInWindow = 0
    this.#windowStart = now
  }
}

const STUCK: End = {
  threw: new Error('the attempt took longer than its timeout, and did not stop when it was told to'),
}

/** One without a turn is as early as can be. */
const turnOf = (lease: Lease): number => lease.turn ?? 0
