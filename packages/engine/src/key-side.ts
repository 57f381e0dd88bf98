import type { KeyEffects } from './attempts/admit-keyed.ts'
import { FaultyClaims } from './attempts/faulty-claims.ts'
import { LimitSweep } from './concurrency/limit-sweep.sql.ts'
import { LimitWaker } from './concurrency/limit-waker.ts'
import { spaceLimited } from './concurrency/space-limited.sql.ts'
import type { Turns } from './ready/turn.ts'
import { anyLimited, wakeLimited } from './ready/wake-limited.sql.ts'
import type { Clock } from './runtime/clock.ts'
import type { Logger } from './runtime/logger.ts'
import { Loop } from './runtime/loop.ts'
import type { Wakeups } from './shards/wakeups.sql.ts'
import type { Database } from './store/database.ts'

interface KeySideDeps {
  db: Database
  clock: Clock
  logger: Logger
  turns: Turns
  wakeups: Wakeups
  /** A run of the job is gone, for which another may have waited. */
  onGone(jobId: string): void
}

/** What this node has to do with limits of keys besides claiming: runs that wait for a slot or for a rate are woken. */
export class KeySide {
  readonly waker: LimitWaker
  readonly sweep: LimitSweep
  readonly wakerLoop: Loop
  readonly sweepLoop: Loop
  /** For those who claim, who end runs, and who change limits; each is told after the commit. */
  readonly hooks: {
    faulty: FaultyClaims
    onKeyedClaim(effects: KeyEffects): void
    onKeyFreed(shard: number, key: string): void
    onKeyChanged(shard: number, key: string): void
  }

  constructor(deps: KeySideDeps) {
    const { db, clock, turns, wakeups } = deps
    this.waker = new LimitWaker({
      clock,
      anyWaits: () => anyLimited(db),
      wake: (keys, now) => wakeLimited(db, keys, { now, floors: turns.floors(now) }),
      space: (keys, now) => spaceLimited(db, keys, now),
      onNews: () => this.wakerLoop.wake(),
      onReady: (run) => wakeups.ready(run),
      onWaiting: (shard, dueAt) => wakeups.waiting(shard, dueAt),
    })
    this.sweep = new LimitSweep({ db, clock, look: (shard, key) => this.waker.look(shard, key) })
    this.wakerLoop = new Loop('waker of limited runs', this.waker, deps)
    this.sweepLoop = new Loop('sweep of limited runs', this.sweep, deps)
    this.hooks = {
      faulty: new FaultyClaims(deps),
      onKeyedClaim: ({ toWake, asked, gone }) => {
        for (const { shard, key } of toWake) this.waker.look(shard, key)
        for (const { jobId, nominalAt } of asked) wakeups.cancel(jobId, nominalAt)
        for (const jobId of gone) deps.onGone(jobId)
      },
      onKeyFreed: (shard, key) => this.waker.freed(shard, key),
      onKeyChanged: (shard, key) => this.waker.look(shard, key),
    }
  }

  /** Whether any run waits for a slot, as the pulse says. */
  saw(hasLimited: boolean): void {
    if (this.sweep.saw(hasLimited)) this.sweepLoop.wake()
  }
}
