import type { Instant } from '../runtime/clock.ts'

/** The lease that one promoting statement gives to the runs that are born leased. */
export interface LeaseTerms {
  holder: string
  now: Instant
  leaseUntil: Instant
}

/** holder, leased_at, lease_until and deadline of a run m, where the terms are these parameters of the statement. */
export const leasedColumns = ({ now, leaseUntil, holder }: Record<keyof LeaseTerms, string>): string =>
  `case when m.leased then ${holder}::bigint end, to_timestamp(case when m.leased then ${now}::float8 / 1000 end),
       to_timestamp(case when m.leased then least(${leaseUntil}::float8, ${now}::float8 + m.timeout_ms) / 1000 end),
       to_timestamp(case when m.leased then (${now}::float8 + m.timeout_ms) / 1000 end)`
