import type { LimitsDeps } from '../../attempts/claim-within-limits.ts'
import type { Finish } from '../../attempts/finish.sql.ts'
import type { Finisher } from '../../attempts/finisher.ts'
import type { Definitions } from '../../leases/definitions.sql.ts'
import { holderOfCall, holderOfOneCall } from '../../leases/holder.ts'
import { keepLeases } from '../../leases/keep-leases.ts'
import type { Lease } from '../../leases/lease.ts'
import { callsWithLeases, leasesOfCalls } from '../../leases/recover.sql.ts'
import type { Turns } from '../../ready/turn.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Paused } from '../../shards/paused.ts'
import type { Wakeups } from '../../shards/wakeups.sql.ts'
import { type Beginnings, mustBeSaid } from '../beginnings.ts'
import { TraceParents } from '../http/trace-parent.ts'
import { type DefinedLease, Startable, unlessRenewed } from '../startable.ts'
import type { HeldLeases } from './held-leases.ts'
import type { KnownWorker } from './known-worker.ts'
import type { LeaseTokens } from './lease-token.ts'
import { type LeasedRun, leasedRuns } from './leased-run.ts'
import { type Gone, Poll } from './poll.ts'
import { PollLine } from './poll-line.ts'
import { WaitEnds } from './wait-ends.ts'

export interface LeaseCallsDeps extends LimitsDeps {
  logger: Logger
  finisher: Finisher
  definitions: Definitions
  paused: Paused
  wakeups: Wakeups
  turns: Turns
  stopping: AbortSignal
  tokens: LeaseTokens
  held: HeldLeases
  beginnings: Beginnings
}

export interface LeaseCall {
  max: number
  waitMs: number
  leaseMs: number
  requestId?: string
  prefetch: number
  /** Its worker says that work begins, where it has to be said. */
  begins: boolean
}

export interface LeaseAnswer {
  runs: LeasedRun[]
  /** Tokens of runs that it holds and that shall stop. */
  cancelRequested?: string[]
  /** Runs that may be performed at most once wait for a slot: nothing should be leased ahead of them. */
  onceWaiting?: true
  /** It shall take nothing more. */
  draining?: true
}

/** A queue that nobody asks for any more is no longer watched. */
const IDLE_LINE_MS = 60_000

/** The calls of workers that wait at this node for something to do: a line for each queue. */
export class LeaseCalls {
  readonly #deps: LeaseCallsDeps
  readonly #traces: TraceParents
  readonly #startable: Startable
  readonly #lines = new Map<number, PollLine>()
  readonly #waitEnds: WaitEnds
  readonly #goingBack = new Map<string, Promise<void>>()
  #pausedQueueIds: ReadonlySet<number> = new Set()
  #isClosed = false

  constructor(deps: LeaseCallsDeps) {
    this.#deps = deps
    this.#traces = new TraceParents(deps.random)
    this.#waitEnds = new WaitEnds(deps.clock)
    this.#startable = new Startable({ ...deps, end: (finish) => void this.#end(finish) })
  }

  /** The queues that somebody waits for, or did a moment ago. */
  get queueIds(): number[] {
    return [...this.#lines.keys()]
  }

  /** Calls that wait for work, of all queues. */
  get waiting(): number {
    let waiting = 0
    for (const line of this.#lines.values()) waiting += line.size
    return waiting
  }

  hint(queueId: number, level: number, turn: number): void {
    const line = this.#lines.get(queueId)
    if (!line) return
    line.claimer.hint(level, turn)
    if (line.size > 0) line.loop.wake()
  }

  sweep(queueId: number, heads: readonly (number | null)[]): void {
    const line = this.#lines.get(queueId)
    if (!line) return
    line.claimer.sweep(heads)
    if (line.claimer.backlogged && line.size > 0) line.loop.wake()
  }

  /** Something of the queue may be had that was not a moment ago. */
  wake(queueId: number): void {
    const line = this.#lines.get(queueId)
    if (line && line.size > 0 && line.claimer.backlogged) line.loop.wake()
  }

  setPaused(queueIds: ReadonlySet<number>): void {
    this.#pausedQueueIds = queueIds
    for (const line of this.#lines.values()) {
      const wasPaused = line.isPaused
      line.isPaused = queueIds.has(line.queueId)
      if (wasPaused && !line.isPaused) line.loop.wake()
    }
  }

  async lease(
    worker: KnownWorker,
    { queueId, queue }: { queueId: number; queue: string },
    call: LeaseCall,
    gone: Gone,
  ): Promise<LeaseAnswer> {
    const { requestId, max, prefetch, leaseMs } = call
    const holder =
      requestId === undefined ? holderOfOneCall(this.#deps.random) : holderOfCall(worker.tenantId, worker.id, requestId)
    await this.#goingBack.get(holder)
    const mayNotWait = worker.isDraining || worker.toCancel.length > 0 || this.#isClosed
    if (mayNotWait || this.#deps.held.hasCall(holder)) {
      const again = requestId === undefined ? [] : await this.#leasesOf(holder, leaseMs)
      if (mayNotWait || again.length > 0) return this.#answer(worker, again, call)
    }
    if (this.#isClosed) return { runs: [] }
    const poll = new Poll(worker, { holder, max, prefetch, leaseMs, mayBeRepeated: requestId !== undefined })
    const isNew = !this.#lines.has(queueId)
    const line = this.#lineOf(queueId, queue)
    line.add(poll)
    const vanish = () => poll.answer([])
    gone.addEventListener('abort', vanish)
    if (gone.aborted) vanish()
    const timer = call.waitMs === 0 ? null : this.#waitEnds.after(call.waitMs, () => line.expire(poll))
    try {
      if (isNew || call.waitMs === 0) await line.look()
      if (call.waitMs === 0) line.expire(poll)
      const given = await poll.answered
      // Nobody has looked yet whether the call is a repeated one.
      const isUnsure = given.length === 0 && poll.mayBeRepeated && !gone.aborted
      const answer = await this.#answer(worker, isUnsure ? await this.#leasesOf(holder, leaseMs) : given, call)
      if (gone.aborted) {
        this.#takeBack(given)
        worker.toCancel.push(...(answer.cancelRequested ?? []))
      }
      return line.claimer.onceWaits ? { ...answer, onceWaiting: true } : answer
    } catch (error) {
      poll.answer([])
      const given = await poll.answered
      this.#deps.held.add(worker, leaseMs, given)
      this.#takeBack(given)
      throw error
    } finally {
      timer?.cancel()
      gone.removeEventListener('abort', vanish)
    }
  }

  /** Looks which calls are repeated ones, and stops watching queues that nobody waits for. */
  async tidy(now: Instant): Promise<void> {
    for (const [queueId, line] of this.#lines) {
      if (line.size > 0 || now - line.lastUsedAt < IDLE_LINE_MS) continue
      this.#lines.delete(queueId)
      void line.loop.stop()
    }
    for (const line of this.#lines.values()) await line.lookForRepeated()
  }

  /** Answers whoever waits, and lets nobody wait any more. */
  close(): void {
    this.#isClosed = true
    for (const line of this.#lines.values()) for (const poll of line.polls) poll.answer([])
  }

  async stop(): Promise<void> {
    this.close()
    await Promise.all([...this.#lines.values()].map((line) => line.loop.stop()))
  }

  async #answer(worker: KnownWorker, leases: DefinedLease[], { leaseMs, begins }: LeaseCall): Promise<LeaseAnswer> {
    const { db, clock, beginnings, tokens, held } = this.#deps
    held.add(worker, leaseMs, leases)
    const now = clock.now()
    const toBegin = new Set(leases.filter((lease) => mustBeSaid(lease, now)))
    // A worker that does not say it begins with the answer.
    const said = begins || toBegin.size === 0 ? toBegin : await beginnings.sayAll([...toBegin])
    const given = said.size === toBegin.size ? leases : leases.filter((lease) => said.has(lease) || !toBegin.has(lease))
    const terms = { leaseMs, toBegin: begins ? toBegin : NONE }
    const runs = given.length === 0 ? [] : await leasedRuns({ db, tokens, traces: this.#traces }, given, terms)
    const cancelRequested = worker.toCancel
    worker.toCancel = []
    return {
      runs,
      ...(cancelRequested.length === 0 ? {} : { cancelRequested }),
      ...(worker.isDraining ? { draining: true } : {}),
    }
  }

  /** What a call holds already. */
  async #leasesOf(holder: string, leaseMs: number): Promise<DefinedLease[]> {
    const { db } = this.#deps
    const isRepeated = (await callsWithLeases(db, [holder], null)).size > 0
    return isRepeated ? this.#again(ofFirstClaim(await leasesOfCalls(db, [holder])), leaseMs) : []
  }

  /**
   * Renewed before they are given out a second time: the node that claimed them may have seen its caller go, and be about to
   * give them back. What it gives back must not have been renewed.
   */
  async #again(leases: readonly Lease[], leaseMs: number): Promise<DefinedLease[]> {
    const { db, stopping } = this.#deps
    return this.#startable.of(await keepLeases(db, leases, leaseMs, stopping))
  }

  /** Those whose holder has leases besides those of a claim under way get them: the answer to the first call was lost. */
  async #answerRepeated(polls: Poll[], claimedAt: Instant | null): Promise<void> {
    const { db } = this.#deps
    const holders = polls.map((poll) => poll.holder)
    const repeated = await callsWithLeases(db, holders, claimedAt)
    const found = repeated.size === 0 ? [] : await leasesOfCalls(db, [...repeated])
    for (const poll of polls) {
      const own = ofFirstClaim(found.filter((one) => one.holder === poll.holder && one.leasedAt !== claimedAt))
      const leases = own.length === 0 ? [] : await this.#again(own, poll.leaseMs)
      if (leases.length > 0) poll.answer(leases)
    }
    for (const poll of polls) poll.mayBeRepeated = false
  }

  #lineOf(queueId: number, queue: string): PollLine {
    let line = this.#lines.get(queueId)
    if (line === undefined) {
      line = new PollLine(queueId, queue, {
        ...this.#deps,
        startable: this.#startable,
        answerRepeated: (polls, claimedAt) => this.#answerRepeated(polls, claimedAt),
        giveBack: (finish) => void this.#end(finish),
      })
      line.isPaused = this.#pausedQueueIds.has(queueId)
      this.#lines.set(queueId, line)
      line.loop.start()
    }
    return line
  }

  /** Whoever asked will not get them. Asking again under the same id waits until they are back. */
  #takeBack(leases: readonly DefinedLease[]): void {
    const now = this.#deps.clock.now()
    const own = leases.filter((lease) => this.#deps.held.take(lease))
    const [first] = own
    if (first === undefined) return
    const back = Promise.all(own.map((lease) => this.#end(unlessRenewed(lease, now)))).then(() => {
      this.#goingBack.delete(first.holder)
    })
    this.#goingBack.set(first.holder, back)
  }

  /** Ends when that is settled. */
  async #end(finish: Finish): Promise<void> {
    const { finisher, wakeups } = this.#deps
    const outcome = await finisher.finished(finish)
    if (outcome === 'ok' && finish.kind === 'goes_on') wakeups.waiting(finish.fence.shard, finish.nextDueAt)
  }
}

const NONE: ReadonlySet<DefinedLease> = new Set()

/**
 * What a call was given first. Another node that got the same call may have claimed for it before it saw that, and is about to
 * give that back.
 */
function ofFirstClaim(leases: readonly Lease[]): Lease[] {
  const first = Math.min(...leases.map(({ leasedAt }) => leasedAt))
  return leases.filter(({ leasedAt }) => leasedAt === first)
}
