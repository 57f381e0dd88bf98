import type { Connection } from './connection.ts'
import { Ends } from './ends.ts'
import { Heartbeats } from './heartbeats.ts'
import { canceledBefore, type End, givenUp, type Judgement, judge, stuck } from './judge.ts'
import { Keeper } from './keeper.ts'
import type { LeaseBoard } from './lease-board.ts'
import type { HeartbeatAnswer, LeaseAnswer, LeasedRun, WorkerClient } from './lease-calls.ts'
import type { Logger } from './logger.ts'
import { RemoteRun, type RunHome } from './remote-run.ts'
import type { Run } from './run.ts'
import type { ServerClock } from './server-clock.ts'
import type { Slots } from './slots.ts'
import type { WorkerRuntime } from './worker-runtime.ts'

interface CustodyDeps {
  client: WorkerClient
  workerId: string
  leaseMs: number
  connection: Connection
  runtime: WorkerRuntime
  serverClock: ServerClock
  logger: Logger
  board: LeaseBoard
  /** The server has heard of one more end: there may be room for more. */
  onSettled(home: RunHome): void
  onDraining(): void
  onLeaseLost(run: Run): void
}

/**
 * Everything this worker holds: a run is in custody from its lease until the server has heard how it ended, and for so long
 * its lease is kept alive. States: waiting for a slot → active → ended (the server does not know yet) → over.
 */
export class Custody {
  readonly #deps: CustodyDeps
  readonly #heartbeats: Heartbeats
  readonly #keeper: Keeper
  readonly #ends: Ends
  /** Runs that have ended without the server knowing yet. */
  #unsettled = 0
  #onSettled = () => {}

  constructor(deps: CustodyDeps) {
    this.#deps = deps
    this.#heartbeats = new Heartbeats({
      ...deps,
      onLost: (run) => this.#lost(run),
      onCancel: (run) => this.#cancel(run),
      onRenewed: () => this.#refill(),
    })
    this.#keeper = new Keeper({
      ...deps,
      heartbeats: this.#heartbeats,
      timedOut: (run) => this.#timedOut(run),
      giveBack: (runs) => this.giveBack(runs),
    })
    this.#ends = new Ends({
      ...deps,
      onLeaseLost: (run) => this.#sayLost(run),
      onSettled: (run) => this.#settled(run),
    })
  }

  start(): void {
    this.#keeper.start()
  }

  /** Leases have come: into slots, or back if they cannot be performed here. */
  take(answer: LeaseAnswer, slots: Slots, isStopping: boolean): void {
    const { serverClock, leaseMs, runtime } = this.#deps
    const services = {
      now: () => serverClock.now(),
      beat: (run: RemoteRun) => this.#heartbeats.beat(run),
      noted: (run: RemoteRun) => this.#heartbeats.noted(run),
    }
    const monotonicMs = runtime.monotonicMs()
    const taken: RemoteRun[] = []
    let free = slots.freeSlots()
    for (const leased of startingFirst(answer.runs)) {
      const run = new RemoteRun(leased, slots, services, monotonicMs)
      if (run.leaseUntil < run.deadlineAt) {
        serverClock.observe(run.leaseUntil - leaseMs)
        // The answer may have waited longer than the lease: its process was stopped, its machine asleep.
        run.beatAt -= Math.max(0, serverClock.now() - (run.leaseUntil - leaseMs))
      }
      this.#keeper.hold(run)
      // Work that may be done at most once does not wait here: dying with it before it begins would lose it.
      if (isStopping || (run.atMostOnce && free <= 0)) this.#tell(run, 'give_back')
      else taken.push(run)
      free--
    }
    slots.accept(taken)
    for (const token of answer.cancelRequested ?? []) {
      const run = this.#keeper.find(token)
      if (run) this.#cancel(run)
    }
  }

  /** A handler has ended. */
  ended(run: RemoteRun, end: End): void {
    this.#tell(run, judge(run, end, this.#workedMs(run)))
  }

  /** What the thread heard while this one was blocked. */
  heard(answer: HeartbeatAnswer): void {
    const byToken = new Map(this.#keeper.held.map((run) => [run.token, run]))
    for (const outcome of answer.leases) {
      const run = byToken.get(outcome.token)
      if (run) this.#heartbeats.apply(run, outcome)
    }
    this.#refill()
  }

  /** Their work has not begun, and does not begin here. */
  giveBack(runs: readonly RemoteRun[]): void {
    for (const run of runs) this.#tell(run, 'give_back')
  }

  /** Tells the server that the work of the run begins; throws if it may not. */
  begin(run: RemoteRun): Promise<void> {
    return this.#heartbeats.begin(run)
  }

  /** The worker stops and will not wait longer for handlers. */
  abandonActive(): void {
    for (const run of this.#keeper.held) {
      if (run.state !== 'active') continue
      this.#tell(run, givenUp(run, this.#workedMs(run)))
      run.home.giveUp(run, 'stopping')
    }
  }

  /** Ends when the server has heard of everything that has ended. */
  async drained(): Promise<void> {
    if (this.#unsettled === 0) return
    await new Promise<void>((resolve) => {
      this.#onSettled = () => {
        if (this.#unsettled === 0) resolve()
      }
    })
  }

  async end(): Promise<void> {
    this.#keeper.stop()
    this.#ends.end()
    await this.#heartbeats.end()
  }

  #tell(run: RemoteRun, judgement: Judgement): void {
    run.state = 'ended'
    run.home.unsent++
    this.#unsettled++
    const tell = () => this.#ends.tell(run, judgement)
    // What it noted goes first: once the lease is closed nothing more is taken.
    if (run.hasOpenNotes) this.#heartbeats.beat(run).then(tell, tell)
    else tell()
  }

  #settled(run: RemoteRun): void {
    run.state = 'over'
    this.#keeper.drop(run)
    run.home.unsent--
    this.#unsettled--
    this.#deps.onSettled(run.home)
    this.#onSettled()
  }

  #cancel(run: RemoteRun): void {
    if (run.aborted) return
    run.abort('canceled')
    if (run.state !== 'waiting') return
    this.#tell(run, canceledBefore(run))
  }

  #lost(run: RemoteRun): void {
    this.#keeper.drop(run)
    run.state = 'over'
    run.home.giveUp(run, 'lease_lost')
    this.#sayLost(run)
  }

  /** It ignores that its time is up: it gives its slot back, and the server hears of it. */
  #timedOut(run: RemoteRun): void {
    this.#tell(run, run.hasBegun ? stuck(run, this.#workedMs(run)) : 'give_back')
    run.home.giveUp(run, 'timeout')
  }

  #sayLost(run: RemoteRun): void {
    const { logger, onLeaseLost } = this.#deps
    logger.warn('a lease was lost', { runId: run.id, attempt: run.attempt })
    try {
      onLeaseLost(run)
    } catch (error) {
      logger.error('onLeaseLost threw', { error })
    }
  }

  #refill(): void {
    const homes = new Set<RunHome>()
    for (const run of this.#keeper.held) if (run.state === 'waiting') homes.add(run.home)
    for (const home of homes) home.fill()
  }

  #workedMs(run: RemoteRun): number {
    return run.startedAt === null ? 0 : this.#deps.runtime.monotonicMs() - run.startedAt
  }
}

/** Work that may be done at most once was given for the slots that are free: it gets them. */
function startingFirst(runs: LeasedRun[]): LeasedRun[] {
  if (!runs.some(({ atMostOnce }) => atMostOnce)) return runs
  return [...runs.filter(({ atMostOnce }) => atMostOnce), ...runs.filter(({ atMostOnce }) => !atMostOnce)]
}
