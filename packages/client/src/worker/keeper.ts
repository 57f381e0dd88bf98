import type { Heartbeats } from './heartbeats.ts'
import type { LeaseBoard } from './lease-board.ts'
import type { RemoteRun, RunHome } from './remote-run.ts'
import type { ServerClock } from './server-clock.ts'
import type { WorkerRuntime } from './worker-runtime.ts'

const TICK_MS = 200
/** The longest time between two heartbeats: they also say that the worker is there, and ask whether a run shall stop. */
const MAX_PERIOD_MS = 10_000
/** A handler that ignores its timeout for so long gives its slot back; what it still does is nobody's business. */
const STUCK_MS = 5_000
/** The wall clock ran ahead of the other by so much: the machine was asleep. (Or somebody set it; asking is harmless.) */
const ASLEEP_MS = 1_000

interface KeeperDeps {
  runtime: WorkerRuntime
  serverClock: ServerClock
  heartbeats: Heartbeats
  board: LeaseBoard
  leaseMs: number
  /** It did not stop when its time was up. */
  timedOut(run: RemoteRun): void
  /** Their work has not begun, and does not begin here. */
  giveBack(runs: readonly RemoteRun[]): void
}

/**
 * Watches over everything the worker holds, from its arrival until the server has heard how it ended: has leases renewed at a
 * third of their length, tells handlers that their time is up, and after a pause of the whole process asks at once what
 * became of the leases.
 */
export class Keeper {
  readonly #deps: KeeperDeps
  /** A list, not a map by token: tens of thousands come and go each second, and few are ever looked for. */
  readonly #held: RemoteRun[] = []
  readonly #periodMs: number
  readonly #tickMs: number
  #timer: { cancel(): void } | null = null
  #tickedAt: { monotonicMs: number; wallMs: number } | null = null

  constructor(deps: KeeperDeps) {
    this.#deps = deps
    this.#periodMs = Math.min(deps.leaseMs / 3, MAX_PERIOD_MS)
    this.#tickMs = Math.min(TICK_MS, deps.leaseMs / 15)
  }

  /** A copy: runs may leave while it is gone through. */
  get held(): RemoteRun[] {
    return [...this.#held]
  }

  find(token: string): RemoteRun | undefined {
    return this.#held.find((run) => run.token === token)
  }

  /** Before its handler starts: from here on the lease is kept alive. */
  hold(run: RemoteRun): void {
    run.place = this.#held.push(run) - 1
    run.boardSlot = this.#deps.board.add(run.token)
  }

  drop(run: RemoteRun): void {
    const { place } = run
    if (place === -1) return
    run.place = -1
    const last = this.#held.pop() as RemoteRun
    if (last !== run) {
      last.place = place
      this.#held[place] = last
    }
    this.#deps.board.remove(run.boardSlot)
    run.boardSlot = -1
  }

  start(): void {
    this.#timer = this.#deps.runtime.timer(this.#tickMs, () => {
      this.runOnce()
      if (this.#timer) this.start()
    })
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = null
  }

  runOnce(): void {
    const { runtime, serverClock, heartbeats, board, leaseMs, timedOut, giveBack } = this.#deps
    this.#noticeSleep()
    const monotonicMs = runtime.monotonicMs()
    const now = serverClock.now()
    const homes = new Set<RunHome>()
    let oldestMs = 0
    for (const run of this.held) {
      if (run.state === 'waiting') homes.add(run.home)
      if (run.state === 'active' && now >= run.deadlineAt) {
        if (now >= run.deadlineAt + STUCK_MS) timedOut(run)
        else run.abort('timeout')
      }
      oldestMs = Math.max(oldestMs, monotonicMs - run.beatAt)
    }
    for (const home of homes) giveBack(home.takeOverdue())
    // As long as none is late the thread has nothing to do.
    if (oldestMs < leaseMs * 0.4) board.beat()
    if (oldestMs < this.#periodMs) return
    // All that are not quite fresh go along, so that one call in each period covers them all.
    for (const run of this.#held) if (monotonicMs - run.beatAt >= this.#periodMs / 2) heartbeats.renew(run)
  }

  #noticeSleep(): void {
    const { runtime, serverClock } = this.#deps
    const at = { monotonicMs: runtime.monotonicMs(), wallMs: runtime.now() }
    const before = this.#tickedAt ?? at
    this.#tickedAt = at
    const asleepMs = at.wallMs - before.wallMs - (at.monotonicMs - before.monotonicMs)
    if (asleepMs < ASLEEP_MS) return
    serverClock.leap(asleepMs)
    for (const run of this.#held) run.beatAt -= asleepMs
  }
}
