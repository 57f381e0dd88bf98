import { invariant } from '../errors.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Database } from '../store/database.ts'
import { dropPartition, type Rescue } from './drop-partition.ts'
import { listPartitions } from './list-partitions.sql.ts'
import { dayOf, type Partition, partitionName } from './partition.ts'
import { keepReferred, referringJobs } from './referred-specs.sql.ts'

const DEFAULT_RETENTION_DAYS = 400

/** Days dropped by one step. */
const MAX_DROPPED = 20
/** Specs that are moved while every other transaction waits for them; with more the day stays, and is looked at again. */
const MAX_KEPT = 10_000
const HOUR_MS = 3_600_000
const BUSY_WAIT_MS = 60_000

export interface DropExpiredDeps {
  db: Database
  clock: Clock
  logger: Logger
  retentionDays?: number
}

export interface DroppedExpired {
  dropped: string[]
  /** Somebody was reading them. */
  busy: string[]
  /** Too many of their specs are still referred to. */
  kept: string[]
  waitMs: number
}

/**
 * Drops the days whose last instant is older than the retention, oldest first. A spec that something still refers to is first moved
 * to `specs_kept`: nothing that can still run loses its definition, and a job is found as long as its history is kept. Any node may
 * do this at any time; a day that is gone already is no news.
 */
export async function dropExpired({
  db,
  clock,
  logger,
  retentionDays = DEFAULT_RETENTION_DAYS,
}: DropExpiredDeps): Promise<DroppedExpired> {
  invariant(retentionDays >= 1, `history cannot be kept for ${retentionDays} days`)
  const oldestKept = clock.now() - retentionDays * DAY_MS
  const expired = (await listPartitions(db, db.schema))
    .filter(({ day }) => day + DAY_MS <= oldestKept)
    .sort((a, b) => a.day - b.day)
  const result: DroppedExpired = { dropped: [], busy: [], kept: [], waitMs: HOUR_MS }
  for (const partition of expired) {
    if (result.dropped.length === MAX_DROPPED) return { ...result, waitMs: 0 }
    const outcome =
      partition.table === 'specs'
        ? await dropSpecs(db, partition, dayOf(oldestKept))
        : await dropPartition(db, partition, dropAll)
    if (outcome !== 'gone') result[outcome].push(partitionName(partition))
  }
  if (result.dropped.length > 0) logger.info('days of history have expired', { dropped: result.dropped })
  if (result.kept.length > 0) logger.info('expired days of specs are still referred to', { kept: result.kept })
  return result.busy.length > 0 ? { ...result, waitMs: BUSY_WAIT_MS } : result
}

type Outcome = Awaited<ReturnType<typeof dropPartition>> | 'kept'

const dropAll: Rescue = async () => {}

async function dropSpecs(db: Database, partition: Partition, since: Instant): Promise<Outcome> {
  const jobs = await referringJobs(db, partition, { since, limit: MAX_KEPT + 1 })
  if (jobs.length > MAX_KEPT) return 'kept'
  return dropPartition(db, partition, (client) => keepReferred(client, db.schema, partition, jobs))
}
