import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { checkWord, limitOf, type Page, type PageRequest, pageOf, readCursor } from '../store/page.ts'
import { type WorkerKey, type WorkerRow, workerRow, workerRows } from '../tenants/worker-rows.sql.ts'
import { readTextFilter } from './filter.ts'

/** A worker that has not been seen for so long is shown as lost; it is active again with its next call. */
const LOST_AFTER_MS = 30_000

const STATUSES = ['active', 'draining', 'lost'] as const
export type WorkerStatus = (typeof STATUSES)[number]

export interface WorkerView {
  id: string
  status: WorkerStatus
  queues: string[]
  /** How many runs it performs at once, if it said so. */
  capacity: number | null
  version: string | null
  labels: Record<string, string>
  startedAt: Date
  lastSeenAt: Date
  /** Runs it held when it was last seen, without those whose leases have ended since. */
  inFlight: number
}

export interface ListWorkers extends PageRequest {
  queue?: string
  status?: WorkerStatus
}

const ID = /^[A-Za-z0-9._:-]{1,128}$/

/** Null: the tenant has no such worker. */
export async function getWorker(db: Queryable, key: WorkerKey, now: Instant): Promise<WorkerView | null> {
  const row = ID.test(key.id) ? await workerRow(db, key) : null
  return row === null ? null : workerViewOf(row, now)
}

/** In the order of their ids, a page at a time. */
export async function listWorkers(
  db: Queryable,
  { tenantId, shards, now, ...request }: ListWorkers & { tenantId: number; shards: number; now: Instant },
): Promise<Page<WorkerView>> {
  const { status } = request
  checkWord('status', status, STATUSES)
  const limit = limitOf(request)
  const [after] = readCursor(request, [ID]) ?? ['']
  const rows = await workerRows(db, {
    tenantId,
    shards,
    after: after as string,
    queue: readTextFilter('queue', request.queue),
    isLost: status === undefined ? null : status === 'lost',
    isDraining: status === undefined || status === 'lost' ? null : status === 'draining',
    lostSince: now - LOST_AFTER_MS,
    limit: limit + 1,
  })
  const found = rows.map((row) => workerViewOf(row, now))
  return pageOf(found, limit, ({ id }) => [id])
}

export function workerViewOf(row: WorkerRow, now: Instant): WorkerView {
  const { id, queues, capacity, version, labels, startedAt, seenAt, inFlight } = row
  return {
    id,
    status: statusOf(row, now),
    queues,
    capacity,
    version,
    labels,
    startedAt: new Date(startedAt),
    lastSeenAt: new Date(seenAt),
    inFlight,
  }
}

/** That it is gone says more than that it was to go. */
function statusOf({ seenAt, isDraining }: WorkerRow, now: Instant): WorkerStatus {
  if (now - seenAt >= LOST_AFTER_MS) return 'lost'
  return isDraining ? 'draining' : 'active'
}
