import type { KeyEffects } from './attempts/admit-keyed.ts'
import { FaultyClaims } from './attempts/faulty-claims.ts'
import { recallPaused } from './attempts/recall-paused.sql.ts'
import type { KeyRef } from './concurrency/key-ref.ts'
import { spaceLimited } from './concurrency/space-limited.sql.ts'
import { BEFORE_KEYS, sweepLimited } from './concurrency/sweep-limited.sql.ts'
import { ExpectedJobs } from './ready/expected-jobs.ts'
import { Sweep } from './ready/sweep.ts'
import { sweepBlocked } from './ready/sweep-blocked.sql.ts'
import type { Turns } from './ready/turn.ts'
import { wakeBlocked } from './ready/wake-blocked.sql.ts'
import { anyLimited, type KeyToWake, MOST_AT_ONCE, wakeLimited } from './ready/wake-limited.sql.ts'
import { wakeWaiting } from './ready/wake-waiting.sql.ts'
import { type WakeList, Waker } from './ready/waker.ts'
import { NOTHING } from './ready/woken.ts'
import type { Clock, Instant } from './runtime/clock.ts'
import type { Logger } from './runtime/logger.ts'
import type { PauseMark } from './shards/paused.ts'
import type { PulseAnswer } from './shards/pulse.sql.ts'
import type { Wakeups } from './shards/wakeups.sql.ts'
import type { Database } from './store/database.ts'

interface WakeSideDeps {
  db: Database
  clock: Clock
  logger: Logger
  turns: Turns
  wakeups: Wakeups
  /** The waker has something to look at. */
  onNews(): void
  /** A run of the job is gone, for which another may have waited. */
  onGone(jobId: string): void
}

/** What this node has to do with runs that wait: what they wait for, by kind, and the two agents that wake them. */
export class WakeSide {
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
  /** For what claims, ends runs, and changes limits; each is told after the commit. */
  readonly hooks: {
    faulty: FaultyClaims
    onKeyedClaim(effects: KeyEffects): void
    onKeyFreed(shard: number, key: string): void
    onKeyChanged(shard: number, key: string): void
  }
  #owned: ReadonlySet<number> = new Set()

  constructor(deps: WakeSideDeps) {
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
      blocked: { look: (piece) => sweepBlocked(db, piece, deps.onGone) },
      limited: { first: BEFORE_KEYS, look: (piece) => sweepLimited(db, piece, clock.now(), this.#lookAtKey) },
    })
    this.hooks = {
      faulty: new FaultyClaims(deps),
      onKeyedClaim: ({ toWake, asked, gone }) => {
        for (const { shard, key } of toWake) this.#lookAtKey(shard, key)
        for (const { jobId, nominalAt } of asked) wakeups.cancel(jobId, nominalAt)
        for (const jobId of gone) deps.onGone(jobId)
      },
      // One run for each slot; of keys of which no agent knows how many slots are free, as many as are.
      onKeyFreed: (shard, key) => this.keys.look({ shard, key, wanted: 1 }),
      onKeyChanged: this.#lookAtKey,
    }
  }

  own(shards: readonly number[]): void {
    this.#owned = new Set(shards)
    this.sweep.own(shards)
  }

  /** A run of the job has ended. */
  ended(jobId: string, definitionJson: string | null | undefined): void {
    if (this.expected.mayWait(jobId, definitionJson)) this.jobs.look(jobId)
  }

  /** Answers whether the sweep is to look. */
  saw(answer: PulseAnswer, asked: { shards: readonly number[] }): boolean {
    asked.shards.forEach((shard, i) => {
      const dueAt = answer.waitingDue[i] ?? Number.POSITIVE_INFINITY
      if (dueAt < Number.POSITIVE_INFINITY) this.shards.look(shard, dueAt)
    })
    for (const pause of answer.pauses) if (pause.endedAt !== null) this.pauses.look(pause)
    return this.sweep.saw(answer)
  }

  readonly #lookAtKey = (shard: number, key: string): void => {
    this.keys.look({ shard, key, wanted: MOST_AT_ONCE })
  }
}
