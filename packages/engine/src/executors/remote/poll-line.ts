import { claim } from '../../attempts/claim.ts'
import type { LimitsDeps } from '../../attempts/claim-within-limits.ts'
import { Claimer, type Room, type Taker } from '../../attempts/claimer.ts'
import { NOT_KNOWN, type Taken } from '../../attempts/taken.ts'
import { readQueueLimits } from '../../concurrency/shared-limits.sql.ts'
import type { Lease } from '../../leases/lease.ts'
import { recoverRemoteLeases } from '../../leases/recover.sql.ts'
import type { Turns } from '../../ready/turn.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Loop, type Step } from '../../runtime/loop.ts'
import { readHeads } from '../../shards/pulse.sql.ts'
import { UnknownOutcome } from '../../store/database-errors.ts'
import { type DefinedLease, type Startable, unlessRenewed } from '../startable.ts'
import type { Poll } from './poll.ts'

export interface PollLineDeps extends LimitsDeps {
  logger: Logger
  turns: Turns
  startable: Startable
  stopping: AbortSignal
  /** Answers those of these calls that have leases besides those of the claim of this instant: they are repeated ones. */
  answerRepeated(polls: Poll[], claimedAt: Instant | null): Promise<void>
  giveBack(finish: ReturnType<typeof unlessRenewed>): void
}

/** As long as a claim takes, about. */
const GATHER_MS = 5

/**
 * The lease calls that wait at this node for runs of one queue, oldest first, and the one claimer that serves them all. While
 * there is less work than room it goes round, one run to each call in turn; of a backlog each call gets as much as it asked for.
 */
export class PollLine implements Taker, Step {
  readonly queueId: number
  readonly queue: string
  readonly claimer: Claimer
  readonly loop: Loop
  readonly #deps: PollLineDeps
  readonly #polls = new Map<string, Poll>()
  /** Those that have waited long enough: what is ready now is the last that they get. */
  #expired: Poll[] = []
  /** Calls are compared with those before, and cannot be claimed for meanwhile. */
  #comparing: Promise<void> = Promise.resolve()
  #hasBacklog = false
  isPaused = false
  lastUsedAt: Instant

  constructor(queueId: number, queue: string, deps: PollLineDeps) {
    this.queueId = queueId
    this.queue = queue
    this.#deps = deps
    this.claimer = new Claimer(this, deps)
    this.loop = new Loop(`lease calls of queue ${queue}`, this, deps)
    this.lastUsedAt = deps.clock.now()
  }

  get size(): number {
    return this.#polls.size
  }

  get polls(): Iterable<Poll> {
    return this.#polls.values()
  }

  /** A call that is sent again while it still waits takes the place of the one that nobody listens to any more. */
  add(poll: Poll): void {
    this.#polls.get(poll.holder)?.answer([])
    this.#polls.set(poll.holder, poll)
    this.lastUsedAt = this.#deps.clock.now()
    poll.worker.calls.add(poll)
    poll.whenOver(() => {
      poll.worker.calls.delete(poll)
      if (this.#polls.get(poll.holder) === poll) this.#polls.delete(poll.holder)
    })
    if (this.claimer.backlogged) this.loop.wake()
  }

  /** Looks at the queue itself, not only at what was said about it. */
  async look(): Promise<void> {
    const { db, limited } = this.#deps
    const { queueId } = this
    const [[heads = []], limits] = await Promise.all([readHeads(db, [queueId]), readQueueLimits(db, [queueId])])
    limited.learn([queueId], [...limits.keys()])
    this.claimer.sweep(heads)
    this.loop.wake()
  }

  /** Looks which of those that wait are repeated calls, before there is anything to claim for them. */
  async lookForRepeated(): Promise<void> {
    const unsure = this.#idle.filter((poll) => poll.mayBeRepeated && !poll.isLeaving)
    if (unsure.length === 0) return
    const comparing = this.#compare(unsure)
    this.#comparing = comparing.catch(() => {})
    await comparing
  }

  async #compare(unsure: Poll[]): Promise<void> {
    for (const poll of unsure) poll.isBusy = true
    try {
      await this.#deps.answerRepeated(unsure, null)
    } finally {
      for (const poll of unsure) poll.isBusy = false
      if (this.claimer.backlogged) this.loop.wake()
    }
  }

  /** The call has waited long enough. */
  expire(poll: Poll): void {
    if (!this.claimer.backlogged) {
      poll.answer([])
      return
    }
    poll.isLeaving = true
    this.#expired.push(poll)
    this.loop.wake()
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const last = this.#expired
    this.#expired = []
    // A call that leaves is claimed for once more, so it must not be one of those that nothing can be claimed for.
    if (last.length > 0) await this.#comparing
    if (this.#polls.size > 0 && this.claimer.backlogged) await this.#gather()
    try {
      return await this.claimer.runOnce()
    } finally {
      for (const poll of last) poll.answer([])
    }
  }

  /**
   * Calls that arrive together are served together; of a backlog, also those that come after them without a gap: a claim for the
   * first one alone would take as long as one for all of them, who would wait for it.
   */
  async #gather(): Promise<void> {
    const { clock } = this.#deps
    const until = clock.now() + GATHER_MS
    for (let size = 0; this.#polls.size > size; ) {
      size = this.#polls.size
      await new Promise((resolve) => setImmediate(resolve))
      if (!this.#hasBacklog || clock.now() >= until) return
    }
  }

  /** Whoever leases ahead is told that others wait for a slot (`onceWaiting`); his open call is not left without work for it. */
  credit(): number {
    const isTight = this.#deps.limited.isTight(this.queueId)
    return this.#isShut ? 0 : this.#sum((poll) => (isTight ? poll.free : poll.max))
  }

  freeSlots(): number {
    return this.#isShut ? 0 : this.#sum((poll) => poll.free)
  }

  wantsMore(): boolean {
    return !this.#isShut && this.#idle.length > 0
  }

  /** What a call is answered with is with its worker. */
  firstWaiting(): null {
    return null
  }

  async lease(room: Room): Promise<Taken> {
    const { places, freePlaces } = this.#placesFor(room)
    // The calls that wait are just being looked at, or have been answered: the work is still there.
    if (places.length === 0) return NOT_KNOWN
    const { clock, giveBack } = this.#deps
    const now = clock.now()
    const polls = new Set(places)
    const unsure = [...polls].filter((poll) => poll.mayBeRepeated)
    for (const poll of polls) poll.isBusy = true
    // A call that was repeated gets what it had, and what it is given now goes back.
    const looked = this.#lookAt(unsure, now)
    try {
      const taken = await this.#claim(room, places, freePlaces, now)
      const unknown = new Set((await looked) ? [] : unsure.map((poll) => poll.holder))
      if (taken === null) return NOT_KNOWN
      this.#hasBacklog = taken.mayBeMore
      const claimed = [...taken.claimed].sort((a, b) => a.turn - b.turn)
      const leases = claimed.map(({ lease }) => lease)
      for (const lease of leases) if (unknown.has(lease.holder)) giveBack(unlessRenewed(lease, clock.now()))
      await this.#give(leases.filter((lease) => !unknown.has(lease.holder)))
      return taken
    } finally {
      await looked
      for (const poll of polls) poll.isBusy = false
    }
  }

  /** False: it is not known which of these calls are repeated ones. */
  async #lookAt(unsure: Poll[], claimedAt: Instant): Promise<boolean> {
    const { answerRepeated, logger } = this.#deps
    try {
      if (unsure.length > 0) await answerRepeated(unsure, claimedAt)
      return true
    } catch (error) {
      logger.warn('lease calls could not be compared with those before', { queue: this.queue, error })
      return false
    }
  }

  /** Null: the outcome was unknown, and what had been leased was given to the calls that it was for. */
  async #claim(room: Room, calls: readonly Poll[], freePlaces: number, now: Instant): Promise<Taken | null> {
    const places = calls.map(({ holder, leaseMs }) => ({ holder, leaseMs }))
    try {
      return await claim(this.#deps, { ...room, queueId: this.queueId, now, limit: places.length, places, freePlaces })
    } catch (error) {
      if (!(error instanceof UnknownOutcome)) throw error
      const holders = [...new Set(calls.map((poll) => poll.holder))]
      const lost = { holders, backendPid: error.backendPid }
      const found = await recoverRemoteLeases(this.#deps, lost, this.#deps.stopping)
      await this.#give(found.filter((lease) => lease.leasedAt === now))
      return null
    }
  }

  /** Which call gets the first run, the second, and so on: their free slots first, then what waits at their workers. */
  #placesFor({ kind, freeSlots, limit }: Room): { places: Poll[]; freePlaces: number } {
    const places = inTurns(this.#idle, (poll) => poll.free, limit)
    const freePlaces = places.length
    if (kind === 'plain') places.push(...inTurns(this.#idle, (poll) => poll.prefetch, limit - freePlaces))
    return { places, freePlaces: Math.min(freePlaces, freeSlots) }
  }

  async #give(leases: readonly Lease[]): Promise<void> {
    const { startable, clock, giveBack } = this.#deps
    const byHolder = new Map<string, DefinedLease[]>()
    for (const lease of await startable.of(leases)) {
      const list = byHolder.get(lease.holder)
      if (list) list.push(lease)
      else byHolder.set(lease.holder, [lease])
    }
    for (const [holder, list] of byHolder) {
      if (this.#polls.get(holder)?.answer(list)) continue
      // Whoever asked is gone: the next one gets them.
      for (const lease of list) giveBack(unlessRenewed(lease, clock.now()))
    }
  }

  /** Nothing is to be had: the queue is paused, or its limit lets nothing through for now. */
  get #isShut(): boolean {
    return this.isPaused || this.#deps.limited.isClosed(this.queueId)
  }

  /** Those that something can be claimed for. */
  get #idle(): Poll[] {
    return [...this.#polls.values()].filter((poll) => !poll.isBusy)
  }

  #sum(room: (poll: Poll) => number): number {
    let sum = 0
    for (const poll of this.#idle) sum += room(poll)
    return sum
  }
}

/** One to each call in turn, while it has room. */
function inTurns(polls: readonly Poll[], room: (poll: Poll) => number, limit: number): Poll[] {
  const places: Poll[] = []
  let waiting = polls.map((poll) => ({ poll, left: room(poll) })).filter(({ left }) => left > 0)
  while (waiting.length > 0 && places.length < limit) {
    for (const call of waiting.slice(0, limit - places.length)) {
      places.push(call.poll)
      call.left--
    }
    waiting = waiting.filter(({ left }) => left > 0)
  }
  return places
}
