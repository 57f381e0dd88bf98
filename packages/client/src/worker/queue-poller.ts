import { pause } from '../runtime/runtime.ts'
import { type Connection, isAway } from './connection.ts'
import type { CallOptions, LeaseAnswer, LeaseCall, WorkerClient } from './lease-calls.ts'
import type { Slots } from './slots.ts'
import type { WorkerRuntime } from './worker-runtime.ts'

const MAX_RUNS = 1_000
const MAX_OPEN = 2
const MAX_TRIES = 5
const MIN_WAIT_MS = 27_000
const MAX_WAIT_MS = 30_000
const AHEAD_WAIT_MS = 1_000
const ANSWER_MS = 10_000
/** An empty answer that comes sooner than this was not waited for. */
const EARLY_MS = 500
const BREAK_OFF_MS = 500
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

interface QueuePollerDeps {
  client: WorkerClient
  workerId: string
  leaseMs: number
  connection: Connection
  runtime: WorkerRuntime
  /** Leases have come; they are the worker's from here on. */
  onLeased(answer: LeaseAnswer): void
}

/**
 * Leases the runs of one queue into its slots with long polls: one while the queue is quiet, two while it is not. Each call
 * has an id under which it is repeated until it is answered, so that no lease is lost with an answer.
 */
export class QueuePoller {
  readonly queue: string
  readonly #slots: Slots
  readonly #deps: QueuePollerDeps
  readonly #stopping = new AbortController()
  readonly #open = new Set<Promise<void>>()
  /** Open calls that ask for slots which are free. */
  #openFree = 0
  #isQuiet = true
  #isClosed = false
  #pauseMs = 0

  constructor(queue: string, slots: Slots, deps: QueuePollerDeps) {
    this.queue = queue
    this.#slots = slots
    this.#deps = deps
  }

  /** Asks for as much as there is room for, unless that is under way. */
  wake(): void {
    while (!this.#isClosed && this.#slots.wantsMore()) {
      const max = Math.min(MAX_RUNS, this.#slots.credit())
      const free = Math.min(max, this.#slots.freeSlots())
      // Slots that are free are always asked for: some runs are only given into these.
      const isNeeded = free > 0 && this.#openFree === 0
      if (!isNeeded && this.#open.size >= (this.#isQuiet ? 1 : MAX_OPEN)) return
      // Leasing ahead hardly waits beside another call: that will find what comes.
      this.#start(max, free, free > 0 || this.#open.size === 0 ? this.#waitMs() : AHEAD_WAIT_MS)
    }
  }

  #start(max: number, free: number, waitMs: number): void {
    if (free > 0) this.#openFree++
    const poll: Promise<void> = this.#poll(max, max - free, waitMs).finally(() => {
      this.#open.delete(poll)
      if (free > 0) this.#openFree--
      this.wake()
    })
    this.#open.add(poll)
  }

  /** Asks for nothing more. */
  close(): void {
    this.#isClosed = true
  }

  /**
   * Ends when no call is open. A server that knows of the drain answers them at once; those that it does not are broken off,
   * and what was leased to them all the same is handed on.
   */
  async stop(): Promise<void> {
    this.close()
    const { runtime } = this.#deps
    const timer = runtime.timer(BREAK_OFF_MS, () => this.#stopping.abort())
    await Promise.all(this.#open)
    timer.cancel()
    this.#stopping.abort()
  }

  /** Different each time, so that workers that were started together do not come back together. */
  #waitMs(): number {
    return Math.round(MIN_WAIT_MS + this.#deps.runtime.chance() * (MAX_WAIT_MS - MIN_WAIT_MS))
  }

  async #poll(max: number, prefetch: number, waitMs: number): Promise<void> {
    const { runtime, workerId, leaseMs } = this.#deps
    const call = { workerId, max, prefetch, waitMs, leaseMs, begins: true, requestId: runtime.uniqueId() }
    // Given up after a few, so that a server that always answers so is not asked for ever.
    for (let tries = 1; tries <= MAX_TRIES && (await this.#askOnce(call)) === 'again'; tries++);
  }

  /**
   * `again`: the call had to be repeated, and this answer was not waited for (the server stops, or a cancel ended it early), so
   * that it may not be about the leases that the first one got.
   */
  async #askOnce(call: LeaseCall): Promise<'answered' | 'again'> {
    const { runtime, onLeased } = this.#deps
    let calls = 0
    let askedAt = 0
    this.#slots.reserve(call)
    const answer = await this.#ask(call, () => {
      calls++
      askedAt = runtime.monotonicMs()
    }).finally(() => this.#slots.unreserve(call))
    if (!answer) return 'answered'
    this.#slots.isHoldingBack = answer.onceWaiting === true
    onLeased(answer)
    this.#isQuiet = answer.runs.length === 0
    const isEarly = this.#isQuiet && runtime.monotonicMs() - askedAt < EARLY_MS
    if (isEarly) await this.#calm()
    else this.#pauseMs = 0
    return isEarly && calls > 1 && !answer.draining ? 'again' : 'answered'
  }

  /** Null: it was broken off, and nothing had been leased. */
  async #ask(call: LeaseCall, onTry: () => void): Promise<LeaseAnswer | null> {
    const { connection } = this.#deps
    const { signal } = this.#stopping
    let isAsked = false
    try {
      return await connection.repeat(
        (options) => {
          isAsked = true
          onTry()
          return this.#lease(call, options)
        },
        // Whatever the server says against it (no such scope, a queue of the other kind): somebody may put it right.
        { timeoutMs: ANSWER_MS, signal, retries: () => true },
      )
    } catch (error) {
      if (!signal.aborted) throw error
      return isAsked ? this.#recover(call) : null
    }
  }

  /** The answer to a call that was broken off may have been on its way: asked for again, it names the same leases. */
  async #recover(call: LeaseCall): Promise<LeaseAnswer | null> {
    for (let tries = 0; tries < 3; tries++) {
      try {
        return await this.#lease({ ...call, waitMs: 0 }, { timeoutMs: 2_000, retries: 0 })
      } catch (error) {
        if (!isAway(error)) return null
      }
    }
    return null
  }

  #lease(call: LeaseCall, options: CallOptions): Promise<LeaseAnswer> {
    return this.#deps.client.leases.lease(this.queue, call, options)
  }

  /** A server that answers at once with nothing is not asked in circles. */
  async #calm(): Promise<void> {
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2))
    await pause(this.#deps.runtime, this.#pauseMs, this.#stopping.signal).catch(() => {})
  }
}
