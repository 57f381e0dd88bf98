import type { End } from './judge.ts'
import type { Perform } from './perform.ts'
import { Prefetch } from './prefetch.ts'
import type { RemoteRun, RunHome } from './remote-run.ts'
import type { AbortReason } from './run.ts'
import type { ServerClock } from './server-clock.ts'
import type { WorkerRuntime } from './worker-runtime.ts'

export interface SlotsOptions {
  perform: Perform
  /** How many calls of the handler are under way at most. */
  concurrency: number
  /** How many runs one call takes. */
  size: number
  /** How long a call that could begin waits for more runs than it has. */
  waitMs: number
  prefetch?: number
}

export interface SlotsDeps {
  runtime: WorkerRuntime
  serverClock: ServerClock
  /** Tells the server that the work of the run begins; throws if it may not. */
  begin(run: RemoteRun): Promise<void>
  /** The handler has ended with this run, one way or another. */
  onEnd(run: RemoteRun, end: End): void
  /** There may be room for more. */
  onRoom(): void
}

/** What has waited here for so long goes back: another process may have a slot for it. */
const MAX_WAIT_MS = 1_000
/** As a multiple of what it has room for. */
const MAX_UNSENT = 4

/**
 * The runs of one queue that this worker performs, at most `concurrency` calls of its handler at a time, and those that wait
 * for a slot. What it holds is never more than all slots together and the room for prefetch.
 */
export class Slots implements RunHome {
  readonly #options: SlotsOptions
  readonly #deps: SlotsDeps
  readonly #prefetch: Prefetch
  #backlog: RemoteRun[] = []
  #backlogHead = 0
  #reserved = 0
  #reservedFree = 0
  #calls = 0
  #active = 0
  #stopped = false
  #fillPlanned = false
  #gathering: { cancel(): void } | null = null
  #gathered = false
  unsent = 0
  /** Work that may be done at most once waits for a slot: nothing is leased ahead of it. */
  isHoldingBack = false

  constructor(options: SlotsOptions, deps: SlotsDeps) {
    this.#options = options
    this.#deps = deps
    this.#prefetch = new Prefetch(options.prefetch, deps.runtime)
  }

  /** Runs that a handler is at work on. */
  get active(): number {
    return this.#active
  }

  get waiting(): number {
    return this.#backlog.length - this.#backlogHead
  }

  /** All slots together, in runs. */
  get slotCount(): number {
    return this.#options.concurrency * this.#options.size
  }

  /** The most it can ever hold, with what has ended and the server has not heard of. */
  get mostHeld(): number {
    return (1 + MAX_UNSENT) * (this.slotCount + this.#prefetch.limit)
  }

  /** Runs that could start this moment. */
  freeSlots(): number {
    const { concurrency, size } = this.#options
    return this.#stopped ? 0 : Math.max(0, (concurrency - this.#calls) * size - this.waiting - this.#reservedFree)
  }

  /** How many more runs may be leased. */
  credit(): number {
    const { concurrency, size } = this.#options
    if (this.#stopped) return 0
    const ahead = this.isHoldingBack ? 0 : this.#prefetch.room
    const room = (concurrency - this.#calls) * size + ahead
    // A slot that is free can always be asked for. Open calls that lease ahead may have asked for all of the room, and some runs never
    // come by them.
    return Math.max(this.freeSlots(), room - this.waiting - this.#reserved)
  }

  /** Enough room for a call that is worth making. */
  wantsMore(): boolean {
    const credit = this.credit()
    const capacity = this.slotCount + this.#prefetch.room
    // What ends faster than the server hears of it would pile up here while the server is away.
    if (this.unsent >= MAX_UNSENT * capacity) return false
    return credit > 0 && (this.waiting === 0 || credit >= capacity / 4)
  }

  /** A call asks for so many runs, of which `prefetch` would have to wait. */
  reserve({ max, prefetch }: { max: number; prefetch: number }): void {
    this.#reserved += max
    this.#reservedFree += max - prefetch
  }

  unreserve({ max, prefetch }: { max: number; prefetch: number }): void {
    this.#reserved -= max
    this.#reservedFree -= max - prefetch
  }

  accept(runs: readonly RemoteRun[]): void {
    for (const run of runs) this.#backlog.push(run)
    if (this.#fillPlanned || runs.length === 0) return
    this.#fillPlanned = true
    // Not in this turn: the next lease call goes out first.
    setImmediate(() => {
      this.#fillPlanned = false
      this.fill()
    })
  }

  /** Takes the waiting runs away: they will not be started here. */
  takeWaiting(): RemoteRun[] {
    const taken = this.#backlog.slice(this.#backlogHead).filter((run) => run.state === 'waiting')
    this.#backlog = []
    this.#backlogHead = 0
    return taken
  }

  /** Takes those away that have waited for too long. What gathers for a call that could begin waits for no slot. */
  takeOverdue(): RemoteRun[] {
    if (this.waiting === 0 || this.#calls < this.#options.concurrency) return []
    const before = this.#deps.runtime.monotonicMs() - MAX_WAIT_MS
    const isOverdue = ({ cameAt }: RemoteRun) => cameAt <= before
    const waiting = this.#backlog.slice(this.#backlogHead)
    if (!waiting.some(isOverdue)) return []
    this.#prefetch.wasTooMuch()
    this.#backlog = waiting.filter((run) => !isOverdue(run))
    this.#backlogHead = 0
    return waiting.filter((run) => isOverdue(run) && run.state === 'waiting')
  }

  /** Starts nothing more. */
  stop(): void {
    this.#stopped = true
    this.#gathering?.cancel()
  }

  /** Gives the slot back although the handler has not ended: its lease is lost, or it ignores that it was aborted. */
  giveUp(run: RemoteRun, reason: AbortReason): void {
    run.abort(reason)
    if (this.#leave(run)) this.fill()
  }

  /** Starts what waits and may start. */
  fill(): void {
    while (!this.#stopped && this.#calls < this.#options.concurrency && this.#mayStart()) {
      const group = this.#takeGroup()
      if (group.length === 0) break
      this.#start(group)
    }
    if (this.#backlogHead === this.#backlog.length) {
      this.#backlog = []
      this.#backlogHead = 0
    }
    this.#deps.onRoom()
  }

  #mayStart(): boolean {
    const { size, waitMs } = this.#options
    if (this.waiting === 0) return false
    if (this.#gathered || waitMs === 0 || this.waiting >= size) return true
    // Work that may be done at most once does not wait: dying with it before it begins would lose it.
    if (this.#backlog.slice(this.#backlogHead).some((run) => run.atMostOnce)) return true
    this.#gathering ??= this.#deps.runtime.timer(waitMs, () => {
      this.#gathering = null
      this.#gathered = true
      this.fill()
    })
    return false
  }

  #takeGroup(): RemoteRun[] {
    const now = this.#deps.serverClock.now()
    const group: RemoteRun[] = []
    while (group.length < this.#options.size && this.#backlogHead < this.#backlog.length) {
      const run = this.#backlog[this.#backlogHead] as RemoteRun
      // An expired lease may be another's by now: it waits until it was renewed, or found lost.
      if (run.state === 'waiting' && run.leaseUntil <= now) break
      this.#backlogHead++
      if (run.state === 'waiting') group.push(run)
    }
    if (group.length > 0) {
      this.#gathered = false
      this.#gathering?.cancel()
      this.#gathering = null
    }
    return group
  }

  #start(runs: RemoteRun[]): void {
    const startedAt = this.#deps.runtime.monotonicMs()
    const group = { left: runs.length }
    this.#calls++
    this.#active += runs.length
    for (const run of runs) {
      run.state = 'active'
      run.startedAt = startedAt
      run.group = group
    }
    if (runs.some((run) => run.mustBeSaid)) void this.#say(runs)
    else this.#perform(runs)
  }

  /** None of a group begins before the server has heard of all that it must hear of. */
  async #say(runs: RemoteRun[]): Promise<void> {
    const unsaid = new Set<RemoteRun>()
    const say = (run: RemoteRun) => this.#deps.begin(run).catch(() => unsaid.add(run))
    await Promise.all(runs.filter((run) => run.mustBeSaid).map(say))
    const mayBegin = (run: RemoteRun) => !unsaid.has(run) && run.state === 'active' && !run.aborted
    for (const run of runs) if (!mayBegin(run)) this.#end(run, { notBegun: true })
    this.#perform(runs.filter(mayBegin))
  }

  #perform(runs: RemoteRun[]): void {
    if (runs.length === 0) return
    const at = this.#deps.runtime.monotonicMs()
    const now = this.#deps.serverClock.now()
    for (const run of runs) run.begin(at, now)
    this.#options.perform(runs, (run, end) => this.#end(run, end))
  }

  #end(run: RemoteRun, end: End): void {
    this.#prefetch.ended()
    const wasActive = this.#leave(run)
    if (run.state === 'active') this.#deps.onEnd(run, end)
    if (wasActive) this.fill()
  }

  #leave(run: RemoteRun): boolean {
    const { group } = run
    if (!group) return false
    run.group = null
    this.#active--
    group.left--
    if (group.left === 0) this.#calls--
    return true
  }
}
