import { RUN_STATE } from '../job/states.ts'
import type { QueueGauge, Wanted } from '../tenants/queue-gauge.sql.ts'
import type { Prepared } from './put-prepared.ts'

/** Whether a create is refused that finds too much waiting in its queue. */
export type WhenFull = 'refuse' | 'accept'

/** Measures the queues of a call that have limits, where that was not done a moment ago. */
export async function measureQueues(gauge: QueueGauge, prepared: readonly Prepared[]): Promise<void> {
  if (!gauge.isIdle) await gauge.refresh(prepared.map(({ job }) => job.queueId))
}

/**
 * Throws `queue_full` if one of the queues has no room for what would be made. One-offs are counted, also such that are due later:
 * whoever is to slow down would else plan everything a little ahead. A recurring job is a definition and no load, so it is let in.
 */
export function mustHaveRoom(gauge: QueueGauge, fresh: readonly Prepared[]): void {
  if (gauge.isIdle) return
  const wanted = new Map<number, Wanted>()
  for (const { job, understood } of fresh) {
    if (job.kind === 'recurring') continue
    const { queueId } = job
    const want = wanted.get(queueId) ?? { queueId, queue: understood.queue, jobs: 0, due: 0 }
    want.jobs++
    if (job.kind === 'immediate' && job.state === RUN_STATE.ready) want.due++
    wanted.set(queueId, want)
  }
  gauge.admit([...wanted.values()])
}
