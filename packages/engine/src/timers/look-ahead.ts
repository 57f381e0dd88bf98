import type { Instant } from '../runtime/clock.ts'
import { type Position, positionBefore } from './read-due.sql.ts'
import type { Timer } from './timer.ts'

/** Timers of a queue that is full for the moment keep no others from their turn, unless there are very many. */
const MAX_PASSED = 2_000

/**
 * The timers of one shard that are due soon, read before their time. Memory is only a cache of the table: promotion compares
 * and sets, so a timer that changed meanwhile is found out. A job has one entry: a timer that is read again after a change
 * takes the place of its older copy, so that no batch holds two copies of one timer. A timer that was written below the
 * position is read again when a wake-up names it, or when the pulse sees a due time earlier than the head.
 */
export class ShardTimers {
  readonly shard: number
  #queue: Timer[] = []
  /** What is in the queue, by job: a job stands there once, as it was last read. */
  readonly #byJob = new Map<string, Timer>()
  readonly #underWay = new Set<Timer>()
  #position: Position = positionBefore(Number.NEGATIVE_INFINITY)
  #wanted = true
  #knownAtLook: Instant = Number.POSITIVE_INFINITY

  constructor(shard: number) {
    this.shard = shard
  }

  get size(): number {
    return this.#queue.length
  }

  get wanted(): boolean {
    return this.#wanted
  }

  get position(): Position {
    return this.#position
  }

  /** The earliest due time in memory. */
  get headDueAt(): Instant {
    return this.#queue[0]?.dueAt ?? Number.POSITIVE_INFINITY
  }

  /** Something is due at the instant: makes sure that it will be read. */
  want(dueAt: Instant): void {
    if (dueAt <= this.#position.dueAt) this.#position = positionBefore(dueAt)
    this.#wanted = true
  }

  /** Takes a chunk that was read from `from` on. A full chunk means that there is more. */
  add(timers: Timer[], from: Position, chunkWasFull: boolean): void {
    const fresh = timers.filter((timer) => this.#byJob.get(timer.jobId)?.version !== timer.version)
    const changed = fresh.some((timer) => this.#byJob.has(timer.jobId))
    for (const timer of fresh) this.#byJob.set(timer.jobId, timer)
    if (changed) this.#queue = this.#queue.filter((timer) => this.#byJob.get(timer.jobId) === timer)
    const inOrder =
      this.headDueAt === Number.POSITIVE_INFINITY || (this.#queue.at(-1) as Timer).dueAt <= (fresh[0]?.dueAt ?? 0)
    this.#queue.push(...fresh)
    if (!inOrder) this.#queue.sort((a, b) => a.dueAt - b.dueAt)
    // Somebody may have lowered the position while the chunk was under way: then it stays lowered.
    if (this.#position !== from) return
    const last = timers.at(-1)
    if (last) this.#position = { dueAt: last.dueAt, jobId: last.jobId }
    this.#wanted = chunkWasFull
  }

  /** Takes due timers that `admit` takes, in order of their time; it passes over a bounded number of others. */
  takeDue(now: Instant, limit: number, admit: (timer: Timer) => boolean): Timer[] {
    const taken: Timer[] = []
    const passed: Timer[] = []
    for (const timer of this.#queue) {
      if (taken.length >= limit || passed.length >= MAX_PASSED || timer.dueAt > now) break
      if (admit(timer)) taken.push(timer)
      else passed.push(timer)
    }
    this.#queue.splice(0, taken.length + passed.length, ...passed)
    for (const timer of taken) {
      this.#byJob.delete(timer.jobId)
      this.#underWay.add(timer)
    }
    return taken
  }

  /** Taken timers have been promoted, or not: in any case the table speaks for them again. */
  done(timer: Timer): void {
    this.#underWay.delete(timer)
  }

  aboutToLook(): void {
    this.#knownAtLook = this.#earliest()
  }

  /** The earliest due time that is, or was at the last look, in memory or being promoted: later ones are no news. */
  earliestKnown(): Instant {
    return Math.min(this.#earliest(), this.#knownAtLook)
  }

  #earliest(): Instant {
    let earliest = this.headDueAt
    for (const timer of this.#underWay) earliest = Math.min(earliest, timer.dueAt)
    return earliest
  }
}
