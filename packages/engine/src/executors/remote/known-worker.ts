import type { Instant } from '../../runtime/clock.ts'

/** A worker that has called this node. */
export class KnownWorker {
  readonly tenantId: number
  readonly id: string
  /** Its calls that wait for work. */
  readonly calls = new Set<{ answer(leases: never[]): boolean }>()
  /** Tokens of runs that shall stop, and that it has not been told yet. */
  toCancel: string[] = []
  isDraining = false
  inFlight = 0
  queue: string | null = null
  seenAt: Instant = 0
  /** It called since the registry was last told. */
  isNews = false
  /** The registry knows it. */
  isTold = false

  constructor(tenantId: number, id: string) {
    this.tenantId = tenantId
    this.id = id
  }

  /** There is something to tell it: its calls need not wait for work. */
  answerCalls(): void {
    for (const call of this.calls) call.answer([])
  }
}
