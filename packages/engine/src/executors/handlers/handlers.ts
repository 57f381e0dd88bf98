import { claim } from '../../attempts/claim.ts'
import type { LimitsDeps } from '../../attempts/claim-within-limits.ts'
import { Claimer, type Room, type Taker } from '../../attempts/claimer.ts'
import type { Finish } from '../../attempts/finish.sql.ts'
import type { Finisher } from '../../attempts/finisher.ts'
import { NOT_KNOWN, type Taken } from '../../attempts/taken.ts'
import { isOnce } from '../../job/states.ts'
import type { Definitions } from '../../leases/definitions.sql.ts'
import { lookAtLeases } from '../../leases/heartbeat.sql.ts'
import { newHolder } from '../../leases/holder.ts'
import type { Lease } from '../../leases/lease.ts'
import { recoverLeases } from '../../leases/recover.sql.ts'
import { type Admission, type DirectLeases, MAX_HOLD_MS } from '../../promotion/direct-leases.ts'
import type { Turns } from '../../ready/turn.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Loop } from '../../runtime/loop.ts'
import { pause } from '../../runtime/pause.ts'
import type { Paused } from '../../shards/paused.ts'
import type { Wakeups } from '../../shards/wakeups.sql.ts'
import { UnknownOutcome } from '../../store/database-errors.ts'
import type { Beginnings } from '../beginnings.ts'
import { Begun } from '../begun.ts'
import { GiveBack } from '../give-back.ts'
import { releaseOf, Startable } from '../startable.ts'
import type { ActiveRun } from './active-run.ts'
import { HandlerPool, type Perform } from './handler-pool.ts'
import { type End, failed, givenUp, type Judge, judge } from './judge.ts'
import { RunSupport } from './run-support.ts'

export interface HandlersDeps extends LimitsDeps {
  logger: Logger
  finisher: Finisher
  definitions: Definitions
  paused: Paused
  wakeups: Wakeups
  turns: Turns
  leaseMs: number
  stopping: AbortSignal
  beginnings: Beginnings
  /** A pool has room again: promotion may be waiting for it. */
  onRoom(): void
}

interface Serving {
  pool: HandlerPool
  claimer: Claimer
  loop: Loop
}

const RETRY_PAUSE_MS = 200

/** The in-process executors: per queue a pool of slots and one claimer that feeds it. */
export class Handlers implements DirectLeases {
  readonly #deps: HandlersDeps
  readonly #support: RunSupport
  readonly #startable: Startable
  readonly #begun: Begun
  readonly #goingBack: GiveBack
  readonly #serving = new Map<number, Serving>()
  /** Handlers that ended after `completeIn`, while the engine looks whether their transaction was committed. */
  readonly #looking = new Set<Promise<void>>()
  #pausedQueueIds: ReadonlySet<number> = new Set()

  constructor(deps: HandlersDeps) {
    this.#deps = deps
    this.#support = new RunSupport(deps)
    this.#startable = new Startable({ ...deps, end: (finish) => this.#end(finish) })
    this.#begun = new Begun(deps.logger)
    this.#goingBack = new GiveBack(deps)
  }

  get queueIds(): number[] {
    return [...this.#serving.keys()]
  }

  get pools(): HandlerPool[] {
    return [...this.#serving.values()].map(({ pool }) => pool)
  }

  claimer(queueId: number): Claimer | undefined {
    return this.#serving.get(queueId)?.claimer
  }

  serves(queueId: number): boolean {
    return this.#serving.has(queueId)
  }

  /** Starts serving a queue; the loop is started by whoever starts loops. */
  serve(queueId: number, perform: Perform, concurrency: number, judges: Judge): Loop {
    const pool = new HandlerPool(queueId, perform, concurrency, {
      clock: this.#deps.clock,
      services: this.#support,
      onEnd: (run, end) => this.#finish(run, end, judges),
      onRoom: () => {
        loop.wake()
        this.#deps.onRoom()
      },
    })
    const { limited } = this.#deps
    const taker: Taker = {
      queueId,
      credit: (onceWaits) => {
        if (this.#isBehind || limited.isClosed(queueId)) return 0
        return onceWaits || limited.isTight(queueId) ? pool.freeSlots() : pool.credit()
      },
      freeSlots: () => (limited.isClosed(queueId) || this.#isBehind ? 0 : pool.freeSlots()),
      firstWaiting: () => pool.firstWaiting(),
      wantsMore: () => !limited.isClosed(queueId) && !this.#isBehind && pool.wantsMore(),
      lease: (room) => this.#lease(queueId, room),
    }
    const claimer = new Claimer(taker, this.#deps)
    const loop = new Loop(`claimer of queue ${queueId}`, claimer, this.#deps)
    pool.paused = this.#pausedQueueIds.has(queueId)
    this.#serving.set(queueId, { pool, claimer, loop })
    return loop
  }

  /** Takes nothing more from these queues; leases that wait for a slot are given back, what has begun goes on. */
  setPaused(queueIds: ReadonlySet<number>): void {
    this.#pausedQueueIds = queueIds
    for (const { pool, loop } of this.#serving.values()) {
      const wasPaused = pool.paused
      pool.paused = queueIds.has(pool.queueId)
      if (pool.paused) this.giveBack(pool.takeWaiting())
      if (!wasPaused || pool.paused) continue
      loop.wake()
      this.#deps.onRoom()
    }
  }

  /** A run shall stop: if its lease waits here for a slot, it does not begin. */
  cancel(jobId: string, nominalAt: Instant): void {
    for (const pool of this.pools) {
      const lease = pool.takeWaitingOf(jobId, nominalAt)
      if (lease !== null) this.#end(releaseOf(lease, this.#deps.clock.now()))
    }
  }

  hint(queueId: number, level: number, turn: number): void {
    const serving = this.#serving.get(queueId)
    if (!serving) return
    serving.claimer.hint(level, turn)
    serving.loop.wake()
  }

  sweep(queueId: number, heads: readonly (number | null)[]): void {
    const serving = this.#serving.get(queueId)
    if (!serving) return
    serving.claimer.sweep(heads)
    if (serving.claimer.backlogged) serving.loop.wake()
  }

  /** Something of the queue may be had that was not a moment ago. */
  wake(queueId: number): void {
    const serving = this.#serving.get(queueId)
    if (serving?.claimer.backlogged) serving.loop.wake()
  }

  admit({ queueId, delivery, dueAt }: { queueId: number; delivery: number; dueAt: Instant }): Admission {
    const serving = this.#serving.get(queueId)
    if (!serving || this.#deps.limited.has(queueId)) return 'ready'
    const { pool, claimer } = serving
    const room = this.#isBehind ? 0 : isOnce(delivery) ? pool.freeSlots() : pool.credit()
    if (room > 0 && !claimer.backlogged) {
      pool.reserve()
      return 'leased'
    }
    const isSoon = this.#deps.finisher.isWriting && pool.hasRoomSoon()
    return isSoon && this.#deps.clock.now() - dueAt < MAX_HOLD_MS ? 'hold' : 'ready'
  }

  /** What has ended is written more slowly than runs end: nothing more is begun until that has caught up. */
  get #isBehind(): boolean {
    return this.#deps.finisher.isBehind
  }

  unreserve({ queueId }: { queueId: number }): void {
    this.#serving.get(queueId)?.pool.unreserve()
  }

  /** Takes leases that are durable already. */
  async deliver(leases: Lease[]): Promise<void> {
    const byQueue = new Map<number, Lease[]>()
    for (const lease of await this.#startable.of(this.#begun.onlyNew(leases, this.#deps.clock.now()))) {
      const list = byQueue.get(lease.queueId)
      if (list) list.push(lease)
      else byQueue.set(lease.queueId, [lease])
    }
    for (const [queueId, list] of byQueue) {
      const pool = this.#serving.get(queueId)?.pool
      // A claim that was under way when its queue was paused.
      if (pool?.paused) this.giveBack(list)
      else pool?.accept(list)
    }
  }

  /** Leases ready runs to this node under one holder, and takes them in order of turn. */
  async #lease(queueId: number, { freeSlots: freePlaces, ...room }: Room): Promise<Taken> {
    const { clock, random, leaseMs, stopping } = this.#deps
    const now = clock.now()
    const holder = newHolder(random)
    try {
      const places = [{ holder, leaseMs }]
      const taken = await claim(this.#deps, { ...room, queueId, now, places, freePlaces })
      const leases = taken.claimed.map(({ lease }) => lease).sort((a, b) => (a.turn ?? 0) - (b.turn ?? 0))
      if (leases.length > 0) await this.deliver(leases)
      return taken
    } catch (error) {
      if (!(error instanceof UnknownOutcome)) throw error
      await this.deliver(await recoverLeases(this.#deps, { holder, backendPid: error.backendPid }, stopping))
      return NOT_KNOWN
    }
  }

  #finish(run: ActiveRun, end: End, judges: Judge): void {
    const { clock, random } = this.#deps
    if (!run.completesItself) {
      const finish = judges(run, end, clock.now(), random)
      if (finish) this.#end(finish)
      else this.#begun.ended(run.lease)
      return
    }
    const looking: Promise<void> = this.#afterOwnTransaction(run, end).finally(() => this.#looking.delete(looking))
    this.#looking.add(looking)
  }

  /** The handler was to complete the run in its own transaction: the row tells whether that committed. */
  async #afterOwnTransaction(run: ActiveRun, end: End): Promise<void> {
    const { db, clock, random, stopping } = this.#deps
    while (!stopping.aborted) {
      try {
        const [live] = await lookAtLeases(db, [run.lease])
        if (live)
          this.#end(
            'threw' in end
              ? judge(run, end, clock.now(), random)
              : failed(run, 'handler_error', 'the transaction was not committed', clock.now(), random),
          )
        else {
          this.#begun.ended(run.lease)
          this.#deps.finisher.gone(run.lease)
        }
        return
      } catch {
        await pause(RETRY_PAUSE_MS)
      }
    }
  }

  #end(finish: Finish): void {
    const { finisher, wakeups } = this.#deps
    finisher.finish(finish, (outcome) => {
      this.#begun.ended(finish.fence)
      if (outcome === 'ok' && finish.kind === 'goes_on') wakeups.waiting(finish.fence.shard, finish.nextDueAt)
    })
  }

  /** Takes nothing new, waits for what runs, and gives back the rest. */
  async drain(graceMs: number): Promise<void> {
    const { clock } = this.#deps
    for (const { pool } of this.#serving.values()) pool.stop()
    await Promise.all([...this.#serving.values()].map(({ loop }) => loop.stop()))
    for (const pool of this.pools) this.giveBack(pool.takeWaiting())
    const until = clock.now() + graceMs
    const busy = () => this.pools.some((pool) => pool.active.size > 0)
    while (busy() && clock.now() < until) await pause(Math.min(20, Math.max(1, until - clock.now())))
    for (const pool of this.pools) {
      for (const run of pool.active) {
        if (!run.completesItself) this.#end(givenUp(run, clock.now()))
        pool.giveUp(run, 'stopping')
      }
    }
    await this.settled()
  }

  /** Their work has not begun, and does not begin here. */
  giveBack(leases: readonly Lease[]): void {
    for (const lease of leases) this.#goingBack.push(lease, () => this.#begun.ended(lease))
  }

  /** Ends when those begin whose beginnings were to be said, and the ends and log lines of all that have ended are written. */
  async settled(): Promise<void> {
    await this.#deps.beginnings.drained()
    await Promise.all(this.#looking)
    await this.#goingBack.drained()
    await this.#deps.finisher.drained()
    await this.#support.drained()
  }
}
