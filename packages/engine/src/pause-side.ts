import { Room } from './intake/room.ts'
import { newJobId } from './job/ids.ts'
import type { Clock, Instant } from './runtime/clock.ts'
import type { Random } from './runtime/random.ts'
import { KnownSettings } from './shards/known-settings.ts'
import { Paused } from './shards/paused.ts'
import type { PulseAnswer } from './shards/pulse.sql.ts'
import { NO_QUEUE_SETTINGS } from './shards/queue-settings.ts'
import { NO_TENANT_LIMITS } from './shards/tenant-limits.ts'
import type { Database } from './store/database.ts'
import { queueGauge } from './tenants/queue-gauge.sql.ts'
import { tenantGauge } from './tenants/tenant-gauge.sql.ts'

interface PauseSideDeps {
  db: Database
  clock: Clock
  random: Random
}

/** What keeps work from being started or taken in on a node: pauses, and queues and tenants of which too much waits. */
export class PauseSide {
  readonly paused = new Paused()
  readonly queueSettings = new KnownSettings(NO_QUEUE_SETTINGS)
  readonly room: Room

  readonly #tenantLimits = new KnownSettings(NO_TENANT_LIMITS)
  readonly #random: Random

  constructor(deps: PauseSideDeps) {
    this.#random = deps.random
    const { db, clock } = deps
    this.room = new Room({
      queues: queueGauge({ db, clock, limits: this.queueSettings }),
      tenants: tenantGauge({ db, clock, limits: this.#tenantLimits }),
    })
  }

  newId(now: Instant): string {
    return newJobId(0, now, this.#random)
  }

  saw({ pauses, queueSettings, tenantLimits }: PulseAnswer): void {
    this.paused.learn(pauses)
    this.queueSettings.learn(queueSettings)
    this.#tenantLimits.learn(tenantLimits)
  }
}
