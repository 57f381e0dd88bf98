import { type Connection, isStumble, mayPass, wordsOf } from './connection.ts'
import type { CallOptions, HeartbeatItem, HeartbeatOutcome, WorkerClient } from './lease-calls.ts'
import type { Logger } from './logger.ts'
import type { RemoteRun } from './remote-run.ts'
import { RunError } from './run-error.ts'
import type { ServerClock } from './server-clock.ts'
import type { WorkerRuntime } from './worker-runtime.ts'

const MAX_ITEMS = 5_000
const MAX_BYTES = 4_194_304
/** So often the server may stumble over a call before it is taken apart. */
const STUMBLES = 3
const MAX_NOTE_BYTES = 1_048_576
/** Lines of a log gather for so long, unless something else goes to the server before. */
const NOTED_MS = 500

interface HeartbeatsDeps {
  client: WorkerClient
  workerId: string
  leaseMs: number
  connection: Connection
  runtime: WorkerRuntime
  serverClock: ServerClock
  logger: Logger
  onLost(run: RemoteRun): void
  onCancel(run: RemoteRun): void
  onRenewed(): void
  onDraining(): void
}

interface Waiter {
  resolve(): void
  reject(error: unknown): void
}

interface Wanted {
  run: RemoteRun
  waiters: Waiter[]
}

/** One lease in a call. */
interface Beat extends Wanted {
  item: HeartbeatItem
  error?: RunError
}

/**
 * Proves to the server that leases are alive, and carries what their handlers noted. One call at a time covers whoever wants
 * to go: while it is under way the next one grows.
 */
export class Heartbeats {
  readonly #deps: HeartbeatsDeps
  readonly #ended = new AbortController()
  #wanted = new Map<RemoteRun, Wanted>()
  #running: Promise<void> | null = null
  #noted = new Set<RemoteRun>()
  readonly #beginning = new Set<RemoteRun>()
  #notedTimer: { cancel(): void } | null = null

  constructor(deps: HeartbeatsDeps) {
    this.#deps = deps
  }

  /** Ends when the server has stored what the run noted, and throws if its lease is lost. */
  beat(run: RemoteRun): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#want(run).waiters.push({ resolve, reject })
    })
  }

  /** Ends when the server knows that the run's work begins, and throws if it may not. */
  begin(run: RemoteRun): Promise<void> {
    this.#beginning.add(run)
    return this.beat(run)
  }

  renew(run: RemoteRun): void {
    if (!run.beating) this.#want(run)
  }

  /** Sends the run's log lines within a moment. */
  noted(run: RemoteRun): void {
    this.#noted.add(run)
    this.#notedTimer ??= this.#deps.runtime.timer(NOTED_MS, () => {
      this.#notedTimer = null
      const runs = [...this.#noted]
      this.#noted.clear()
      for (const one of runs) if (one.state === 'active' && one.unsentNotes) this.#want(one)
    })
  }

  /** What the server said about a lease, here or through the thread. */
  apply(run: RemoteRun, { outcome, leaseUntil, note }: HeartbeatOutcome): void {
    const { serverClock, leaseMs, logger, onLost, onCancel } = this.#deps
    if (note !== undefined) logger.warn('Belfry notes about a heartbeat', { runId: run.id, note })
    if (outcome === 'lease_lost' || outcome === 'unknown_token') {
      // Of a run that has ended its completion's own answer tells.
      if (!run.isDone) onLost(run)
      return
    }
    if (leaseUntil !== undefined) {
      run.leaseUntil = Date.parse(leaseUntil)
      if (outcome === 'ok' && run.leaseUntil < run.deadlineAt) serverClock.observe(run.leaseUntil - leaseMs)
    }
    if (outcome === 'cancel_requested') onCancel(run)
  }

  /** Sends nothing more; whoever waits is told so. */
  async end(): Promise<void> {
    this.#notedTimer?.cancel()
    this.#ended.abort()
    await this.#running
  }

  #want(run: RemoteRun): Wanted {
    let wanted = this.#wanted.get(run)
    if (!wanted) {
      wanted = { run, waiters: [] }
      this.#wanted.set(run, wanted)
      run.beating = true
    }
    this.#running ??= this.#send().finally(() => {
      this.#running = null
    })
    return wanted
  }

  async #send(): Promise<void> {
    // What else wants to go in this turn of the event loop goes along.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#wanted.size > 0) {
      const beats = this.#compose()
      await this.#call(beats)
      for (const { run, waiters, error } of beats) {
        run.beating = this.#wanted.has(run)
        for (const waiter of waiters) {
          if (run.aborted === 'lease_lost') waiter.reject(run.leaseLost())
          else if (error !== undefined) waiter.reject(error)
          else waiter.resolve()
        }
      }
    }
  }

  #compose(): Beat[] {
    const beats: Beat[] = []
    const rest: Wanted[] = []
    let bytes = 0
    for (const wanted of this.#wanted.values()) {
      if (beats.length >= MAX_ITEMS || bytes >= MAX_BYTES) break
      const { run, waiters } = wanted
      const item: HeartbeatItem = { token: run.token, ...(this.#beginning.delete(run) ? { begun: true } : {}) }
      bytes += 150 + (run.unsentNotes?.moveInto(item, MAX_NOTE_BYTES) ?? 0)
      this.#wanted.delete(run)
      // Whoever waits, waits until all of it is stored.
      if (run.unsentNotes) rest.push(wanted)
      beats.push({ run, item, waiters: run.unsentNotes ? [] : waiters })
    }
    for (const wanted of rest) this.#wanted.set(wanted.run, wanted)
    return beats
  }

  async #call(beats: Beat[]): Promise<void> {
    const { connection, leaseMs } = this.#deps
    const timeoutMs = Math.min(10_000, Math.max(1_000, leaseMs / 3))
    try {
      await connection.repeat((options) => this.#try(beats, options), {
        timeoutMs,
        signal: this.#ended.signal,
        retries: (error, tries) => mayPass(error) && !(isStumble(error) && tries >= STUMBLES),
      })
    } catch (error) {
      await this.#refused(beats, error)
    }
  }

  async #try(beats: Beat[], options: CallOptions): Promise<void> {
    const { client, workerId, runtime, onRenewed, onDraining } = this.#deps
    const sentAt = runtime.monotonicMs()
    const answer = await client.leases.heartbeat({ workerId, leases: beats.map(({ item }) => item) }, options)
    const byToken = new Map(beats.map(({ run }) => [run.token, run]))
    for (const outcome of answer.leases) {
      const run = byToken.get(outcome.token)
      if (!run) continue
      run.beatAt = sentAt
      this.apply(run, outcome)
    }
    onRenewed()
    if (answer.draining) onDraining()
  }

  /** One note that the server will not take must not cost the others their leases. */
  async #refused(beats: Beat[], error: unknown): Promise<void> {
    const [first] = beats
    if (this.#ended.signal.aborted || !first) {
      for (const beat of beats) beat.error = new RunError('lease_lost', 'the worker has stopped', { cause: error })
    } else if (beats.length > 1) {
      const half = beats.length >> 1
      await this.#call(beats.slice(0, half))
      await this.#call(beats.slice(half))
    } else {
      first.error = new RunError('invalid_argument', wordsOf(error), { cause: error })
      const hadNotes = Object.keys(first.item).length > 1
      this.#deps.logger.warn('Belfry did not take a heartbeat', { runId: first.run.id, error: wordsOf(error) })
      first.item = { token: first.run.token }
      if (hadNotes) await this.#call(beats)
    }
  }
}
