import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { withoutNul } from '../store/without-nul.ts'

/** What can be changed, as it stands in `job_changes.subject`. */
export const SUBJECT = {
  job: 0,
  queue: 1,
  api_key: 2,
  tenant: 3,
  secret: 4,
  run: 5,
  signing_key: 6,
  calendar: 7,
  /** Of a tenant, a key or an origin. */
  pause: 8,
  origin: 9,
} as const

export type Subject = keyof typeof SUBJECT

export interface Change {
  tenantId: number
  subject: Subject
  subjectId: string
  /** A verb: `pause`, `update`, `rotate`. */
  action: string
  /** Who did it: an API key's prefix, or a program. */
  actor: string
  /** JSON values. Never a secret or a key. */
  before?: unknown
  after?: unknown
  at: Instant
}

const RECORD = statement(
  'record_change',
  `insert into belfry.job_changes (changed_at, tenant_id, shard, subject, subject_id, action, actor, before, after)
   values (to_timestamp($1::float8 / 1000), $2, $3, $4, $5, $6, $7, $8::json, $9::json)`,
)

const jsonOf = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value))

/**
 * Writes down who changed what. Always in the transaction of the change itself, so that there is neither a change without
 * its row nor a row without its change.
 */
export async function recordChange(tx: Queryable, change: Change): Promise<void> {
  const { tenantId, subject, subjectId, action, actor, before, after, at } = change
  const shard = subject === 'job' || subject === 'run' ? shardOfJob(subjectId) : 0
  await tx.execute(RECORD, [
    at,
    tenantId,
    shard,
    SUBJECT[subject],
    subjectId,
    action,
    withoutNul(actor),
    jsonOf(before),
    jsonOf(after),
  ])
}
