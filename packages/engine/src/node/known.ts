import { LimitedQueues } from '../concurrency/limited-queues.ts'
import { Room } from '../intake/room.ts'
import type { Clock } from '../runtime/clock.ts'
import { KnownSettings } from '../shards/known-settings.ts'
import { Paused } from '../shards/paused.ts'
import type { PulseAnswer } from '../shards/pulse.sql.ts'
import type { Asked } from '../shards/pulse.ts'
import { NO_QUEUE_SETTINGS } from '../shards/queue-settings.ts'
import { NO_TENANT_LIMITS } from '../shards/tenant-limits.ts'
import type { Database } from '../store/database.ts'
import { queueGauge } from '../tenants/queue-gauge.sql.ts'
import { tenantGauge } from '../tenants/tenant-gauge.sql.ts'

interface KnownDeps {
  db: Database
  clock: Clock
  /** A queue that was closed by its limit lets something through again. */
  onOpen(queueId: number): void
  /** A limit is new to this node: what was ready while the node did not know of it was left alone, and is to be looked for. */
  onNewLimit(): void
}

/** What keeps work from being started or taken in, as the pulse tells it: pauses, limits of queues, queues and tenants that are full. */
export class Known {
  readonly paused = new Paused()
  readonly queueSettings = new KnownSettings(NO_QUEUE_SETTINGS)
  readonly limited: LimitedQueues
  readonly room: Room
  readonly #tenantLimits = new KnownSettings(NO_TENANT_LIMITS)
  readonly #onNewLimit: () => void
  #liveNodes = 1

  constructor({ db, clock, onOpen, onNewLimit }: KnownDeps) {
    this.limited = new LimitedQueues({ clock, onOpen })
    this.room = new Room({
      queues: queueGauge({ db, clock, limits: this.queueSettings }),
      tenants: tenantGauge({ db, clock, limits: this.#tenantLimits }),
    })
    this.#onNewLimit = onNewLimit
  }

  get liveNodes(): number {
    return this.#liveNodes
  }

  saw(answer: PulseAnswer, { servedQueueIds }: Asked): void {
    this.#liveNodes = answer.liveNodes.length
    this.paused.learn(answer.pauses)
    this.queueSettings.learn(answer.queueSettings)
    this.#tenantLimits.learn(answer.tenantLimits)
    if (this.limited.learn(servedQueueIds, answer.limitedQueueIds)) this.#onNewLimit()
  }
}
