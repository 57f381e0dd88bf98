import { OVERTIME_MS } from '../job/overtime.ts'
import type { Instant } from '../runtime/clock.ts'

/** The fence of one attempt: every write for it names all of this, and changes nothing if it is not the live lease. */
export interface Fence {
  shard: number
  jobId: string
  nominalAt: Instant
  attempt: number
  holder: string
  /** Where it is known: the queue may have a limit. */
  queueId?: number
  /** Where it is known: the limit of which the run holds a slot, that others may wait for. */
  limitKey?: string | null
  /** The definition's JSON, where it is known: it says whether other runs of the job may wait for this one. */
  definition?: string | null
  /** Its end was written in its handler's own transaction, and other jobs wait for it. */
  isAwaited?: boolean
}

/** One attempt that this node may perform. */
export interface Lease extends Fence {
  tenantId: number
  queueId: number
  jobVersion: number
  failures: number
  /** The class of its last failure that counted, by number; null: none did. */
  failureClass: number | null
  timeoutMs: number
  leasedAt: Instant
  /** As far as this node knows; renewed by the keeper. An expired lease is not started. */
  leaseUntil: Instant
  /** When its time is up: its timeout counts from the lease, and anew from its beginning. The holder ends it then. */
  deadline: Instant
  atMostOnce: boolean
  oneOff: boolean
  /** The definition's JSON. For a one-off it comes with the lease; a recurring job's is cached by version. */
  definition: string | null
  /** JSON that stands in for the payload of the job: the run was triggered with it. */
  ownPayload?: string | null
  /** Leases that wait for a slot start in order of it; one without was never ready, and nothing waited when it was leased. */
  turn?: number
  /** Made by a backfill, for a time that has long passed. */
  isBackfill?: boolean
}

/** No renewal goes beyond it. */
export const lastUntil = ({ leasedAt, timeoutMs }: Lease): Instant => leasedAt + timeoutMs + OVERTIME_MS

/** From when the age of a run counts. One of a backfill may be as old as it is: it counts from its lease. */
export const agesFrom = ({ nominalAt, leasedAt, isBackfill }: Lease): Instant => (isBackfill ? leasedAt : nominalAt)

interface Placed {
  shard: number
  jobId: string
  nominalAt: Instant
}

/** Shard, job and nominal time: the order in which every batch takes its rows, so that two batches cannot deadlock. */
export const byLockOrder = (a: Placed, b: Placed): number =>
  a.shard - b.shard || (a.jobId < b.jobId ? -1 : a.jobId > b.jobId ? 1 : a.nominalAt - b.nominalAt)

/** Names a run in the answers of a statement, whatever its attempt. */
export const runKey = ({ jobId, nominalAt }: Pick<Placed, 'jobId' | 'nominalAt'>): string => `${jobId}.${nominalAt}`

/** A lease that is known to be lost. */
export const LOST: Instant = 0
