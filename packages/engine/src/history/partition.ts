import { jobIdLowerBound } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'

/**
 * What has happened is kept by the day, in UTC, so that a day leaves as a whole and costs no delete. Four tables are cut
 * by the instant of their rows; specs by the instant that stands in the job id, with `specs_kept` for those whose day is not there
 * yet, or was dropped before they were over: it is the default partition.
 */
export const PARTITIONED_TABLES = ['attempts', 'skips', 'attempt_logs', 'job_changes', 'specs'] as const

export type PartitionedTable = (typeof PARTITIONED_TABLES)[number]

export interface Partition {
  table: PartitionedTable
  /** The first instant of the day. */
  day: Instant
}

export const dayOf = (instant: Instant): Instant => Math.floor(instant / DAY_MS) * DAY_MS

const dateOf = (day: Instant): string => new Date(day).toISOString().slice(0, 10)

/** `attempts_20261115` */
export const partitionName = ({ table, day }: Partition): string => `${table}_${dateOf(day).replaceAll('-', '')}`

const NAME = /^([a-z_]+)_(\d{4})(\d\d)(\d\d)$/

/** Reads only what `partitionName` writes; null for every other table, `specs_kept` among them. */
export function partitionOf(name: string): Partition | null {
  const match = NAME.exec(name)
  const table = PARTITIONED_TABLES.find((one) => one === match?.[1])
  if (match === null || table === undefined) return null
  const partition = { table, day: Date.UTC(Number(match[2]), Number(match[3]) - 1, Number(match[4])) }
  return partitionName(partition) === name ? partition : null
}

/** The half-open range of one day: literals of the table's partition key. */
export function boundsOf({ table, day }: Partition): { from: string; to: string } {
  const bound = (instant: Instant) => (table === 'specs' ? jobIdLowerBound(instant) : `${dateOf(instant)} 00:00:00+00`)
  return { from: bound(day), to: bound(day + DAY_MS) }
}
