import { LimitedQueues } from './concurrency/limited-queues.ts'
import type { Clock } from './runtime/clock.ts'
import type { PulseAnswer } from './shards/pulse.sql.ts'
import type { Wakeups } from './shards/wakeups.sql.ts'

interface QueueLimitsDeps {
  clock: Clock
  wakeups: Wakeups
  /** Those who claim on this node. */
  claimers(): readonly { wake(queueId: number): void }[]
  sweepNext(): void
}

/** What this node has to do with limited queues: it learns of them, and of slots that became free, here and elsewhere. */
export class QueueLimits {
  readonly queues: LimitedQueues
  readonly #deps: QueueLimitsDeps

  constructor(deps: QueueLimitsDeps) {
    this.#deps = deps
    const onOpen = (queueId: number) => {
      for (const claimer of deps.claimers()) claimer.wake(queueId)
    }
    this.queues = new LimitedQueues({ clock: deps.clock, onOpen })
  }

  /** What was ready while the node did not know of the limit was left alone: it is looked for now. */
  saw({ limitedQueueIds }: PulseAnswer, { servedQueueIds }: { servedQueueIds: readonly number[] }): void {
    if (this.queues.learn(servedQueueIds, limitedQueueIds)) this.#deps.sweepNext()
  }

  /** An attempt of this node is over: whoever waits for its slot is told, on whatever node. */
  readonly onFreed = (queueId: number | undefined): void => {
    if (queueId !== undefined && this.queues.has(queueId)) this.#deps.wakeups.freed(queueId)
  }
}
