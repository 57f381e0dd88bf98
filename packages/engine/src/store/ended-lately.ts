/**
 * Narrows history to the days in which whatever stands in a receipt can have ended, by a value that is known when the statement begins:
 * PostgreSQL 18 must not choose partitions later in a statement that locks rows
 * ([0026](../../../../docs/decisions/0026-partitions-and-locks.md)).
 */
export const endedLately = (now: string): string =>
  `a.finished_at >= to_timestamp(${now}::float8 / 1000) - interval '8 days' and a.finished_at < to_timestamp(${now}::float8 / 1000) + interval '1 day'`
