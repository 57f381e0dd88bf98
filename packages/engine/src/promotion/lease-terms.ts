import { LIMIT_KIND } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'

/** The lease that one promoting statement gives to the runs that are born leased. */
export interface LeaseTerms {
  holder: string
  now: Instant
  leaseUntil: Instant
}

/** Those of these queues that have a limit: nothing of them is born leased, whatever the node knows. One look-up for all. */
export const limitedAmong = (queueIds: string): string =>
  `array(select l.key from belfry.limits l where l.kind = ${LIMIT_KIND.queue} and l.key = any(${queueIds}::bigint[]))`

/** The queues that are to be asked about. */
export const queuesOfLeased = (items: readonly { leased: boolean; queueId: number }[]): number[] => [
  ...new Set(items.flatMap(({ leased, queueId }) => (leased ? [queueId] : []))),
]

/** holder, leased_at, lease_until and deadline of a run m, where the terms are these parameters of the statement. */
export const leasedColumns = ({ now, leaseUntil, holder }: Record<keyof LeaseTerms, string>): string =>
  `case when m.leased then ${holder}::bigint end, to_timestamp(case when m.leased then ${now}::float8 / 1000 end),
       to_timestamp(case when m.leased then least(${leaseUntil}::float8, ${now}::float8 + m.timeout_ms) / 1000 end),
       to_timestamp(case when m.leased then (${now}::float8 + m.timeout_ms) / 1000 end)`
