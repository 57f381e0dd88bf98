import type { Instant } from '../../runtime/clock.ts'

/** So long after its end a lease may still be live: the reaper looks once a second, and an answer may be late. */
export const SLACK_MS = 5_000

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
  /** The end of the last lease of it that this node gave or renewed: what it holds by then has ended, or is closed. */
  holdsUntil: Instant = 0
  queue: string | null = null
  seenAt: Instant = 0
  /** It called since the registry was last told. */
  isNews = false
  /** The registry knows it. */
  isTold = false
  /** How many runs the registry was told that it holds. */
  toldInFlight = 0

  constructor(tenantId: number, id: string) {
    this.tenantId = tenantId
    this.id = id
  }

  /** How many runs it holds, as far as this node knows. */
  inFlightAt(now: Instant): number {
    return now < this.holdsUntil + SLACK_MS ? Math.max(0, this.inFlight) : 0
  }

  /** There is something to tell it: its calls need not wait for work. */
  answerCalls(): void {
    for (const call of this.calls) call.answer([])
  }
}
