import { Recaller } from './attempts/recaller.sql.ts'
import { newJobId } from './job/ids.ts'
import type { Clock, Instant } from './runtime/clock.ts'
import type { Random } from './runtime/random.ts'
import { Paused } from './shards/paused.ts'
import type { PulseAnswer } from './shards/pulse.sql.ts'
import { KnownQueueSettings } from './shards/queue-settings.ts'
import type { Wakeups } from './shards/wakeups.sql.ts'
import type { Database } from './store/database.ts'
import { QueueGauge } from './tenants/queue-gauge.sql.ts'

interface PauseSideDeps {
  db: Database
  clock: Clock
  wakeups: Wakeups
  shards: number
  random: Random
}

/** What keeps work from being started or taken in on a node: pauses, and queues in which too much waits. */
export class PauseSide {
  readonly paused = new Paused()
  readonly queueSettings = new KnownQueueSettings()
  readonly gauge: QueueGauge
  readonly recaller: Recaller

  readonly #random: Random

  constructor(deps: PauseSideDeps) {
    this.#random = deps.random
    this.gauge = new QueueGauge({ ...deps, settings: this.queueSettings })
    this.recaller = new Recaller(deps)
  }

  newId(now: Instant): string {
    return newJobId(0, now, this.#random)
  }

  /** Answers whether runs are to be called back. */
  saw({ pauses, queueSettings }: PulseAnswer): boolean {
    this.paused.learn(pauses)
    this.queueSettings.learn(queueSettings)
    return this.recaller.saw(pauses)
  }
}
