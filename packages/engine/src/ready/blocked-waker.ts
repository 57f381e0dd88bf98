import type { Clock, Instant } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import type { Database } from '../store/database.ts'
import type { Turns } from './turn.ts'
import { wakeBlocked } from './wake-blocked.sql.ts'
import type { MadeReady } from './wake-waiting.sql.ts'

export interface BlockedWakerDeps {
  db: Database
  clock: Clock
  turns: Turns
  /** There is something to look at. */
  onNews(): void
  onReady(run: MadeReady): void
  onWaiting(shard: number, dueAt: Instant): void
}

const BATCH = 500
const LONGEST_WAIT_MS = 1_000
/** A job that somebody holds is looked at again soon, not in a spin, and after a while left to the sweep. */
const LOCKED_PAUSE_MS = 20
const MAX_TRIES = 25
/** Jobs that wait to be looked at; the sweep finds what does not fit. */
const MAX_PENDING = 100_000
/** Jobs that are remembered because one of their runs waits; the sweep wakes those of the rest. */
const MAX_EXPECTED = 10_000

/**
 * Wakes runs that wait for another run of their job to end. It is told of jobs of which a run has just ended, by whoever ended
 * it, and by the pulse of jobs whose next run nobody has woken. A word that is lost costs a second, never a run.
 */
export class BlockedWaker implements Step {
  readonly #deps: BlockedWakerDeps
  /** By job, how often it was found locked. */
  readonly #pending = new Map<string, number>()
  /** Jobs of which a run waits though their definition does not say so, the longest remembered first. */
  readonly #expected = new Set<string>()

  constructor(deps: BlockedWakerDeps) {
    this.#deps = deps
  }

  /**
   * A run of the job is being made that waits, whatever the definition says: a trigger with a policy of its own, or a run that
   * was opened again. To be told before the commit, so that no end of the other run comes between.
   */
  expects(jobId: string): void {
    const [oldest] = this.#expected
    if (this.#expected.size >= MAX_EXPECTED && oldest !== undefined) this.#expected.delete(oldest)
    this.#expected.add(jobId)
  }

  /** A run of a job with this definition has ended. */
  ended(jobId: string, definitionJson: string | null | undefined): void {
    if (mayHaveBlocked(definitionJson) || this.#expected.has(jobId)) this.look(jobId)
  }

  /** A run of the job is gone: the next one may begin. */
  look(jobId: string): void {
    if (this.#pending.size >= MAX_PENDING) return
    this.#pending.set(jobId, 0)
    this.#deps.onNews()
  }

  async runOnce(): Promise<{ waitMs: number; woken: number }> {
    const { db, clock, turns, onReady, onWaiting } = this.#deps
    const batch = new Map<string, number>()
    for (const [jobId, tries] of this.#pending) {
      batch.set(jobId, tries)
      if (batch.size === BATCH) break
    }
    if (batch.size === 0) return { waitMs: LONGEST_WAIT_MS, woken: 0 }
    // Forgotten before the statement: what ends meanwhile is told again.
    for (const jobId of batch.keys()) this.#pending.delete(jobId)
    const now = clock.now()
    try {
      const { ready, waiting, locked } = await wakeBlocked(db, [...batch.keys()], { now, floors: turns.floors(now) })
      for (const run of ready) onReady(run)
      for (const { shard, dueAt } of waiting) onWaiting(shard, dueAt)
      for (const jobId of locked) this.#again(jobId, (batch.get(jobId) ?? 0) + 1)
      const woken = ready.length + waiting.length
      if (woken === 0) this.#forget(batch.keys(), locked)
      const pauseMs = this.#pending.size === 0 ? LONGEST_WAIT_MS : LOCKED_PAUSE_MS
      return { waitMs: this.#pending.size > locked.length ? 0 : pauseMs, woken }
    } catch (error) {
      for (const [jobId, tries] of batch) this.#again(jobId, tries)
      throw error
    }
  }

  /** Nothing of these waits any more, as far as one could see. */
  #forget(jobIds: Iterable<string>, locked: readonly string[]): void {
    for (const jobId of jobIds) if (!locked.includes(jobId)) this.#expected.delete(jobId)
  }

  #again(jobId: string, tries: number): void {
    if (tries < MAX_TRIES && !this.#pending.has(jobId)) this.#pending.set(jobId, tries)
  }
}

/**
 * Whether runs of a job with this definition may wait for each other; true where nobody knows. Most definitions say nothing of
 * overlap, and are not looked at any further. Under `skip` a run may wait too that was triggered so, opened again, or met a
 * backfill: of those, `expects` is told, or the sweep wakes them.
 */
const mayHaveBlocked = (definitionJson: string | null | undefined): boolean =>
  definitionJson == null || (definitionJson.includes('"overlap":"') && WAITS.test(definitionJson))

const WAITS = /"overlap":"(?:buffer_|cancel_)/
