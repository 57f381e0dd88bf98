import type { Lease } from '../leases/lease.ts'
import type { Instant } from '../runtime/clock.ts'

/**
 * How a due run is to be born: leased to an executor of this node that has room for it (reserved while the statement is
 * under way), ready for the next claim, or not yet: while ends of this node are being written such an executor has room in a
 * moment, and waiting for it is quicker than the way through the ready runs.
 */
export type Admission = 'leased' | 'ready' | 'hold'

/** The executors of this node, as those see them who lease runs that were never ready. */
export interface DirectLeases {
  admit(run: { queueId: number; delivery: number; dueAt: Instant }): Admission
  unreserve(run: { queueId: number }): void
  deliver(leases: Lease[]): Promise<void>
}

/** How late a due run may become by waiting for room: well below the minute after which catch-up would take it for missed. */
export const MAX_HOLD_MS = 5_000
