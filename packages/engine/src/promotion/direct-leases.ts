import type { Lease } from '../leases/lease.ts'

/**
 * The executors of this node, as promotion sees them: a run may be born leased to one that has room, if nothing older waits
 * for it. A reservation holds the room while the statement is under way.
 */
export interface DirectLeases {
  reserve(run: { queueId: number; delivery: number }): boolean
  unreserve(run: { queueId: number }): void
  deliver(leases: Lease[]): Promise<void>
}
