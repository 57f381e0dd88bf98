import { RUN_STATE } from '../job/states.ts'
import { isOutage } from '../store/database-errors.ts'
import type { Gauge, Wanted } from '../tenants/gauge.ts'
import type { Prepared } from './put-prepared.ts'

/** Whether a create is refused that finds too much waiting in its queue, or of its tenant. */
export type WhenFull = 'refuse' | 'accept'

interface Side {
  gauge: Gauge
  /** The number of the place that a job goes to, and what the place is called. */
  placeOf(prepared: Prepared): Pick<Wanted, 'id' | 'name'>
}

/** Whether there is room for new work: in its queues, and among all that its tenants have waiting. */
export class Room {
  readonly #sides: readonly Side[]

  constructor({ queues, tenants }: { queues: Gauge; tenants: Gauge }) {
    this.#sides = [
      { gauge: queues, placeOf: ({ job, understood }) => ({ id: job.queueId, name: understood.queue }) },
      { gauge: tenants, placeOf: ({ job, understood }) => ({ id: job.tenantId, name: understood.tenant }) },
    ]
  }

  /** Nothing has a limit, so nothing needs to be measured or asked for. */
  get isIdle(): boolean {
    return this.#sides.every(({ gauge }) => gauge.isIdle)
  }

  /**
   * Measures what has limits, where that was not done a moment ago. Before `admit`, outside of any transaction. While the database
   * is away nobody is refused for what is not known: the create itself waits until it is back, or says that it is away.
   */
  async measure(prepared: readonly Prepared[]): Promise<void> {
    for (const { gauge, placeOf } of this.#sides) {
      if (gauge.isIdle) continue
      await gauge.refresh(prepared.map((item) => placeOf(item).id)).catch((error: unknown) => {
        if (!isOutage(error)) throw error
      })
    }
  }

  /**
   * Throws `queue_full` or `tenant_full` if there is no room for what would be made; then it counts as let in nowhere. One-offs are
   * counted, also such that are due later: whoever is to slow down would else plan everything a little ahead. A recurring job is a
   * definition and no load, so it is let in.
   */
  admit(fresh: readonly Prepared[]): void {
    if (this.isIdle) return
    const asked = this.#sides.map(({ gauge, placeOf }) => ({ gauge, wanted: wantedBy(fresh, placeOf) }))
    for (const { gauge, wanted } of asked) gauge.mustHaveRoom(wanted)
    for (const { gauge, wanted } of asked) gauge.letIn(wanted)
  }
}

function wantedBy(fresh: readonly Prepared[], placeOf: Side['placeOf']): Wanted[] {
  const wanted = new Map<number, Wanted>()
  for (const prepared of fresh) {
    const { job } = prepared
    if (job.kind === 'recurring') continue
    const place = placeOf(prepared)
    const want = wanted.get(place.id) ?? { ...place, jobs: 0, due: 0 }
    want.jobs++
    if (job.kind === 'immediate' && job.state === RUN_STATE.ready) want.due++
    wanted.set(place.id, want)
  }
  return [...wanted.values()]
}
