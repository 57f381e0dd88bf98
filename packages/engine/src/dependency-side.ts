import { Deliverer, type DelivererDeps } from './dependencies/deliverer.ts'
import type { Logger } from './runtime/logger.ts'
import { Loop } from './runtime/loop.ts'
import type { Wakeups } from './shards/wakeups.sql.ts'

interface DependencySideDeps extends Omit<DelivererDeps, 'onNews' | 'onReady' | 'onCancel'> {
  logger: Logger
  wakeups: Wakeups
}

/** All that a node does for jobs that wait for others: it tells them what became of those. */
export class DependencySide {
  readonly deliverer: Deliverer
  readonly loop: Loop
  /** For whoever ends runs: some that others wait for have ended, and that is committed. */
  readonly hooks = { onTold: () => this.deliverer.look() }

  constructor(deps: DependencySideDeps) {
    const { wakeups } = deps
    this.deliverer = new Deliverer({
      ...deps,
      onNews: () => this.loop.wake(),
      onReady: (run) => wakeups.ready(run),
      onCancel: (jobId, nominalAt) => wakeups.cancel(jobId, nominalAt),
    })
    this.loop = new Loop('deliverer', this.deliverer, deps)
  }

  /** What the pulse saw. */
  saw(hasOutbox: boolean): void {
    if (this.deliverer.saw(hasOutbox)) this.loop.wake()
  }
}
