import type { Clock, Instant } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import { grouped } from '../runtime/maps.ts'
import type { Vital } from '../store/database.ts'
import { ShardTimers } from './look-ahead.ts'
import { readDueTimers } from './read-due.sql.ts'
import type { Timer } from './timer.ts'

/** How far ahead of their time timers are read. Longer than a pulse, so that what comes due is in memory before. */
const LOOK_AHEAD_MS = 2_500
const CHUNK = 2_000
/** Timers in memory per process. */
const MAX_TIMERS = 50_000
/** A transaction that commits a timer this late is still seen without a sweep. */
const TRAIL_MS = 10_000

/** Reads the coming seconds of the shards that this node owns, before they are due. */
export class TimerReader implements Step {
  readonly #db: Vital
  readonly #clock: Clock
  readonly #shards = new Map<number, ShardTimers>()
  readonly #onRead: () => void
  readonly name = 'timer reader'
  readonly role = 'promoter'

  /** `onRead` hears that timers have come that may be due. */
  constructor(deps: { db: Vital; clock: Clock; onRead: () => void }) {
    this.#db = deps.db
    this.#clock = deps.clock
    this.#onRead = deps.onRead
  }

  get ownedShards(): number[] {
    return [...this.#shards.keys()]
  }

  /** A new owner starts from what is in the database, never from "now". */
  own(shards: readonly number[]): void {
    const owned = new Set(shards)
    for (const shard of this.#shards.keys()) if (!owned.has(shard)) this.#shards.delete(shard)
    for (const shard of shards) if (!this.#shards.has(shard)) this.#shards.set(shard, new ShardTimers(shard))
  }

  want(shard: number, dueAt: Instant): boolean {
    const timers = this.#shards.get(shard)
    if (!timers || dueAt > this.#clock.now() + LOOK_AHEAD_MS) return false
    timers.want(dueAt)
    return true
  }

  /** Where the pulse should look from, per shard. */
  watermark(shard: number): Instant {
    return Math.min(this.#shards.get(shard)?.position.dueAt ?? Number.NEGATIVE_INFINITY, this.#clock.now() - TRAIL_MS)
  }

  /** The pulse is about to look: what is known now is no news when its answer comes. */
  aboutToLook(): void {
    for (const timers of this.#shards.values()) timers.aboutToLook()
  }

  /** The pulse saw the earliest due time of each shard. Answers whether there is anything to read. */
  saw({ timersDue }: { timersDue: readonly Instant[] }, { shards }: { shards: readonly number[] }): boolean {
    let isToRead = false
    shards.forEach((shard, i) => {
      if (this.#sawShard(shard, timersDue[i] ?? Number.POSITIVE_INFINITY)) isToRead = true
    })
    return isToRead
  }

  #sawShard(shard: number, dueAt: Instant): boolean {
    const timers = this.#shards.get(shard)
    if (!timers || dueAt > this.#clock.now() + LOOK_AHEAD_MS) return false
    timers.want(dueAt < timers.earliestKnown() ? dueAt : Math.max(dueAt, timers.position.dueAt + 1))
    return true
  }

  async runOnce(): Promise<{ waitMs: number }> {
    let inMemory = 0
    for (const timers of this.#shards.values()) inMemory += timers.size
    const wanted = [...this.#shards.values()].filter((timers) => timers.wanted)
    if (wanted.length === 0 || inMemory >= MAX_TIMERS) return { waitMs: inMemory >= MAX_TIMERS ? 5 : 1_000 }
    const limit = Math.max(1, Math.min(CHUNK, Math.floor((MAX_TIMERS - inMemory) / wanted.length)))
    const asked = wanted.map((timers) => ({ timers, shard: timers.shard, position: timers.position }))
    const read = await readDueTimers(this.#db, asked, this.#clock.now() + LOOK_AHEAD_MS, limit)
    const byShard = grouped(read, (timer) => timer.shard)
    for (const { timers, position } of asked) {
      const chunk = byShard.get(timers.shard) ?? []
      timers.add(chunk, position, chunk.length === limit)
    }
    if (read.length > 0) this.#onRead()
    return { waitMs: 0 }
  }

  /** The timers that are due now and that `admit` takes, shard by shard, at most `limit`. */
  takeDue(limit: number, admit: (timer: Timer) => boolean): Timer[] {
    const now = this.#clock.now()
    const due: Timer[] = []
    for (const timers of this.#shards.values()) {
      if (due.length >= limit) break
      due.push(...timers.takeDue(now, limit - due.length, admit))
    }
    return due
  }

  /** The promotion of these has ended, one way or another. */
  done(timers: readonly Timer[]): void {
    for (const timer of timers) this.#shards.get(timer.shard)?.done(timer)
  }

  /** When the next timer in memory is due. */
  nextDueAt(): Instant {
    let next = Number.POSITIVE_INFINITY
    for (const timers of this.#shards.values()) next = Math.min(next, timers.headDueAt)
    return next
  }
}
