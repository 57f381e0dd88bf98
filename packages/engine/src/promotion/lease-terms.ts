import { LIMIT_KIND } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'

/** The lease that one promoting statement gives to the runs that are born leased. */
export interface LeaseTerms {
  holder: string
  now: Instant
  leaseMs: number
}

/** Those of these queues that have a limit: nothing of them is born leased, whatever the node knows. One look-up for all. */
export const limitedAmong = (queueIds: string): string =>
  `array(select l.key from belfry.limits l where l.kind = ${LIMIT_KIND.queue} and l.key = any(${queueIds}::bigint[]))`

/** The queues that are to be asked about. */
export const queuesOfLeased = (items: readonly { leased: boolean; queueId: number }[]): number[] => [
  ...new Set(items.flatMap(({ leased, queueId }) => (leased ? [queueId] : []))),
]
