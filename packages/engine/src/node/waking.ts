import { recallPaused } from '../attempts/recall-paused.sql.ts'
import type { KeyRef } from '../concurrency/key-ref.ts'
import { spaceLimited } from '../concurrency/space-limited.sql.ts'
import { BEFORE_KEYS, sweepLimited } from '../concurrency/sweep-limited.sql.ts'
import { ExpectedJobs } from '../ready/expected-jobs.ts'
import { Sweep } from '../ready/sweep.ts'
import { sweepBlocked } from '../ready/sweep-blocked.sql.ts'
import type { Turns } from '../ready/turn.ts'
import { wakeBlocked } from '../ready/wake-blocked.sql.ts'
import { anyLimited, type KeyToWake, MOST_AT_ONCE, wakeLimited } from '../ready/wake-limited.sql.ts'
import { wakeWaiting } from '../ready/wake-waiting.sql.ts'
import { type WakeList, Waker } from '../ready/waker.ts'
import { NOTHING } from '../ready/woken.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { PauseMark } from '../shards/paused.ts'
import type { PulseAnswer } from '../shards/pulse.sql.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Database } from '../store/database.ts'

interface WakingDeps {
  db: Database
  clock: Clock
  logger: Logger
  turns: Turns
  wakeups: Wakeups
  /** The waker has something to look at. */
  onNews(): void
}

/** Runs that wait, by kind of what they wait for, and the two agents that see to them: the waker, which is told, and the sweep. */
export class Waking implements Step {
  readonly name = 'waker'
  readonly waker: Waker
  readonly sweep: Sweep
  /** Jobs of which a run waits though their definition does not say so. */
  readonly expected = new ExpectedJobs()
  /** Shards of which a run waits for its time. */
  readonly shards: WakeList<number>
  /** Jobs of which a run waits for another to end. */
  readonly jobs: WakeList<string>
  /** Keys of which runs wait for a slot. */
  readonly keys: WakeList<KeyToWake>
  /** Pauses that have ended. */
  readonly pauses: WakeList<PauseMark>
  #owned: ReadonlySet<number> = new Set()

  constructor(deps: WakingDeps) {
    const { db, clock, logger, turns, wakeups, onNews } = deps
    const at = (now: Instant) => ({ now, floors: turns.floors(now) })
    this.waker = new Waker({
      ...{ clock, logger, onNews },
      onReady: (run) => wakeups.ready(run),
      onWaiting: (shard, dueAt) => wakeups.waiting(shard, dueAt),
    })
    this.shards = this.waker.list({
      name: 'runs that wait for their time',
      idOf: String,
      wake: (shards, now) =>
        wakeWaiting(
          db,
          shards.filter((shard) => this.#owned.has(shard)),
          at(now),
        ),
    })
    this.jobs = this.waker.list({
      name: 'runs that wait for another of their job',
      idOf: (jobId) => jobId,
      wake: async (jobIds, now) => {
        const woken = await wakeBlocked(db, jobIds, at(now))
        const isAny = woken.ready.length + woken.waiting.length > 0
        if (!isAny) for (const jobId of jobIds) if (!woken.held.includes(jobId)) this.expected.forget(jobId)
        return woken
      },
    })
    const rates: WakeList<KeyRef> = this.waker.list({
      name: 'runs that wait for the rate of their key',
      idOf: ({ key }) => key,
      wake: async (keys, now) => ({ ...NOTHING, ...(await spaceLimited(db, keys, now)) }),
    })
    this.keys = this.waker.list({
      name: 'runs that wait for a slot of their key',
      idOf: ({ key }) => key,
      join: (known, told) => ({ ...told, wanted: Math.min(MOST_AT_ONCE, known.wanted + told.wanted) }),
      anyWaits: () => anyLimited(db),
      wake: async (keys, now) => {
        const { rated, ...woken } = await wakeLimited(db, keys, at(now))
        for (const ref of rated) rates.look(ref)
        return woken
      },
    })
    this.pauses = this.waker.list({
      name: 'runs that a pause put aside',
      idOf: ({ id }) => id,
      wake: async (pauses, now) => ({ ...NOTHING, waiting: await recallPaused(db, pauses, now) }),
    })
    this.sweep = new Sweep({
      clock,
      blocked: { look: (piece) => sweepBlocked(db, piece, (jobId) => this.jobs.look(jobId)) },
      limited: {
        first: BEFORE_KEYS,
        look: (piece) => sweepLimited(db, piece, clock.now(), (shard, key) => this.keyChanged(shard, key)),
      },
    })
  }

  runOnce(): Promise<{ waitMs: number }> {
    return this.waker.runOnce()
  }

  own(shards: readonly number[]): void {
    this.#owned = new Set(shards)
  }

  saw({ waitingDue, pauses }: PulseAnswer, asked: { shards: readonly number[] }): boolean {
    asked.shards.forEach((shard, i) => {
      const dueAt = waitingDue[i] ?? Number.POSITIVE_INFINITY
      if (dueAt < Number.POSITIVE_INFINITY) this.shards.look(shard, dueAt)
    })
    for (const pause of pauses) if (pause.endedAt !== null) this.pauses.look(pause)
    return false
  }

  /** A run of the job has ended. */
  ended(jobId: string, definitionJson: string | null | undefined): void {
    if (this.expected.mayWait(jobId, definitionJson)) this.jobs.look(jobId)
  }

  /** One run may begin. */
  keyFreed(shard: number, key: string): void {
    this.keys.look({ shard, key, wanted: 1 })
  }

  /** As many runs may begin as there are free slots: it is not known how many that are. */
  keyChanged(shard: number, key: string): void {
    this.keys.look({ shard, key, wanted: MOST_AT_ONCE })
  }
}
