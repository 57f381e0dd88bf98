import type { Clock, Instant } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import type { KeyRef } from './key-ref.ts'
import type { Spaced } from './space-limited.sql.ts'
import { WakeTimes } from './wake-times.ts'

interface Ready {
  queueId: number
  priority: number
  delivery: number
  turn: number
}

export interface LimitWakerDeps {
  clock: Clock
  /** Whether any run waits for a key at all. */
  anyWaits(): Promise<boolean>
  /** Makes the oldest runs of these keys ready, as many as are wanted and free; names the keys that have a rate. */
  wake(
    keys: readonly (KeyRef & { wanted: number })[],
    now: Instant,
  ): Promise<{ ready: (Ready & { key: string })[]; rated: KeyRef[] }>
  /** Gives runs of keys that have a rate their times. */
  space(keys: readonly KeyRef[], now: Instant): Promise<Spaced>
  /** There is something to look at. */
  onNews(): void
  onReady(run: Ready): void
  onWaiting(shard: number, dueAt: Instant): void
}

const BATCH = 500
const LONGEST_WAIT_MS = 1_000
const MOST_AT_ONCE = 1_000
const HELD_PAUSE_MS = 10
/** Keys that wait to be looked at; the sweep finds what does not fit. */
const MAX_PENDING = 100_000

/**
 * Wakes runs that wait for a slot of their key, or for its rate. It is told of each slot that somebody freed, and wakes one run
 * for it; of keys of which nobody knows how many are free, by the sweep and when a limit was raised, it wakes as many as are.
 * A word that is lost costs a second, never a run.
 */
export class LimitWaker implements Step {
  readonly #deps: LimitWakerDeps
  readonly #pending = new Map<string, KeyRef & { wanted: number }>()
  /** Keys with a rate, and when the next of their runs are to be given times. */
  readonly #later = new WakeTimes(MAX_PENDING)

  constructor(deps: LimitWakerDeps) {
    this.#deps = deps
  }

  /** A slot of the key is free: the next one may begin. */
  freed(shard: number, key: string): void {
    this.#want(shard, key, 1)
    this.#deps.onNews()
  }

  /** More of the key may be free than anybody was told. */
  look(shard: number, key: string): void {
    this.#want(shard, key, MOST_AT_ONCE)
    this.#deps.onNews()
  }

  async runOnce(): Promise<{ waitMs: number; woken: number }> {
    const { clock, wake, onReady } = this.#deps
    this.#recall(clock.now())
    if (this.#pending.size >= BATCH) await this.#forgetUnlessAnyWaits()
    const batch = this.#take()
    if (batch.length === 0) return { waitMs: this.#waitMs(clock.now()), woken: 0 }
    const now = clock.now()
    try {
      const { ready, rated } = await wake(batch, now)
      for (const run of ready) onReady(run)
      for (const ref of whole(batch, ready)) this.#want(ref.shard, ref.key, MOST_AT_ONCE)
      const { waiting, held } = rated.length === 0 ? NONE : await this.#space(rated, now)
      if (this.#pending.size > 0) return { waitMs: 0, woken: ready.length + waiting }
      return { waitMs: held ? HELD_PAUSE_MS : this.#waitMs(clock.now()), woken: ready.length + waiting }
    } catch (error) {
      for (const { shard, key, wanted } of batch) this.#want(shard, key, wanted)
      throw error
    }
  }

  /** Where slots are freed by the thousand mostly nobody waits: one look instead of one at each key. */
  async #forgetUnlessAnyWaits(): Promise<void> {
    const told = [...this.#pending.values()]
    this.#pending.clear()
    let mayWait = true
    try {
      mayWait = await this.#deps.anyWaits()
    } finally {
      if (mayWait) for (const { shard, key, wanted } of told) this.#want(shard, key, wanted)
    }
  }

  async #space(rated: readonly KeyRef[], now: Instant): Promise<{ waiting: number; held: boolean }> {
    const { space, onWaiting } = this.#deps
    const { waiting, again, held } = await space(rated, now)
    for (const { shard, dueAt } of waiting) onWaiting(shard, dueAt)
    for (const ref of again) this.#later.put(ref)
    for (const ref of held) this.#later.put({ ...ref, at: now + HELD_PAUSE_MS })
    return { waiting: waiting.length, held: held.length > 0 }
  }

  #want(shard: number, key: string, wanted: number): void {
    const known = this.#pending.get(key)
    if (known) known.wanted = Math.min(MOST_AT_ONCE, known.wanted + wanted)
    else if (this.#pending.size < MAX_PENDING) this.#pending.set(key, { shard, key, wanted })
  }

  /** Forgotten before the statement: what is freed meanwhile is told again. */
  #take(): (KeyRef & { wanted: number })[] {
    const batch: (KeyRef & { wanted: number })[] = []
    for (const one of this.#pending.values()) {
      batch.push(one)
      if (batch.length === BATCH) break
    }
    for (const { key } of batch) this.#pending.delete(key)
    return batch
  }

  #recall(now: Instant): void {
    for (const { shard, key } of this.#later.takeDue(now)) this.#want(shard, key, MOST_AT_ONCE)
  }

  #waitMs(now: Instant): number {
    const { firstAt } = this.#later
    return firstAt === null ? LONGEST_WAIT_MS : Math.min(LONGEST_WAIT_MS, Math.max(1, firstAt - now))
  }
}

const NONE = { waiting: 0, held: false }

/** Those of which as many were woken as may be at once: there may be more. */
function whole(batch: readonly (KeyRef & { wanted: number })[], ready: readonly { key: string }[]): KeyRef[] {
  if (ready.length < MOST_AT_ONCE) return []
  const counts = new Map<string, number>()
  for (const { key } of ready) counts.set(key, (counts.get(key) ?? 0) + 1)
  return batch.filter(({ key, wanted }) => wanted === MOST_AT_ONCE && counts.get(key) === MOST_AT_ONCE)
}
