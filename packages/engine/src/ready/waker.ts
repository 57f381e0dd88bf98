import type { Clock, Instant } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import type { Queryable } from '../store/database.ts'
import type { Turns } from './turn.ts'
import { type MadeReady, wakeWaiting } from './wake-waiting.sql.ts'

const PER_SHARD = 500
const LONGEST_WAIT_MS = 1_000

/** Makes runs ready whose backoff or snooze is over, in the shards that this node owns. */
export class Waker implements Step {
  readonly #deps: { db: Queryable; clock: Clock; turns: Turns; onReady(run: MadeReady): void }
  #nextDue = new Map<number, Instant>()

  constructor(deps: { db: Queryable; clock: Clock; turns: Turns; onReady(run: MadeReady): void }) {
    this.#deps = deps
  }

  own(shards: readonly number[]): void {
    this.#nextDue = new Map(shards.map((shard) => [shard, this.#nextDue.get(shard) ?? Number.POSITIVE_INFINITY]))
  }

  /** A run of the shard waits until the instant. */
  saw(shard: number, dueAt: Instant): void {
    const known = this.#nextDue.get(shard)
    if (known !== undefined && dueAt < known) this.#nextDue.set(shard, dueAt)
  }

  async runOnce(): Promise<{ waitMs: number; woken: number }> {
    const { db, clock, turns, onReady } = this.#deps
    const now = clock.now()
    const due = [...this.#nextDue].filter(([, at]) => at <= now).map(([shard]) => shard)
    if (due.length === 0) {
      const next = Math.min(...this.#nextDue.values(), now + LONGEST_WAIT_MS)
      return { waitMs: Math.max(1, next - now), woken: 0 }
    }
    // Forgotten before the statement: what comes due meanwhile is told again, and the pulse asks anyway.
    for (const shard of due) this.#nextDue.set(shard, Number.POSITIVE_INFINITY)
    const ready = await wakeWaiting(db, { shards: due, now, floors: turns.floors(now), limitPerShard: PER_SHARD })
    for (const run of ready) onReady(run)
    if (ready.length >= PER_SHARD) for (const shard of due) this.#nextDue.set(shard, now)
    return { waitMs: ready.length >= PER_SHARD ? 0 : 1, woken: ready.length }
  }
}
