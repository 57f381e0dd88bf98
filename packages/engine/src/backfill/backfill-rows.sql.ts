import { shardOfJob } from '../job/ids.ts'
import { columns, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { AFTER_ALL, limitOf, type Page, type PageRequest, pageOf, readCursor, UUID } from '../store/page.ts'
import { statement } from '../store/statement.ts'
import { type Backfill, type BackfillCounts, type BackfillView, backfillView } from './backfill.ts'

type Columns = Omit<Backfill, 'shard' | 'counts'> & BackfillCounts
type Row = RowOf<Columns>

const COLUMNS = columns<Columns>({
  id: 'b.id',
  jobId: 'b.job_id',
  tenantId: 'b.tenant_id',
  status: 'b.status',
  from: 'b.from_nominal',
  to: 'b.to_nominal',
  position: 'b.position_at',
  scheduleId: 'b.schedule_id',
  concurrency: 'b.concurrency',
  createdAt: 'b.created_at',
  createdBy: 'b.created_by',
  endedAt: 'b.ended_at',
  total: 'b.total',
  created: 'b.created',
  leftOut: 'b.left_out',
  succeeded: 'b.succeeded',
  failed: 'b.failed',
  canceled: 'b.canceled',
})

const PUT = statement(
  'put_backfill',
  `insert into belfry.backfills (shard, id, job_id, tenant_id, from_nominal, to_nominal, position_at, schedule_id, concurrency, total, created_at, created_by)
   values ($1, $2, $3, $4, to_timestamp($5::float8 / 1000), to_timestamp($6::float8 / 1000), to_timestamp($5::float8 / 1000), $7, $8, $9,
     to_timestamp($10::float8 / 1000), $11)`,
)
const GET = statement(
  'get_backfill',
  `select ${COLUMNS.text} from belfry.backfills b where b.shard = $1 and b.id = $2 and ($3::int is null or b.tenant_id = $3)`,
)
const LIST = statement(
  'list_backfills_of_job',
  `select ${COLUMNS.text} from belfry.backfills b
   where b.shard = $1 and b.job_id = $2 and b.tenant_id > 0 and ($3::int is null or b.tenant_id = $3) and b.id < $4
   order by b.id desc limit $5`,
)
const LOCK = statement(
  'lock_backfill',
  `select ${COLUMNS.text} from belfry.backfills b where b.shard = $1 and b.id = $2 for update`,
)
const LOCK_OPEN = statement(
  'lock_open_backfills',
  `select ${COLUMNS.text} from belfry.backfills b where b.shard = $1 and b.job_id = $2 and b.ended_at is null order by b.id limit $3 for update`,
)
const WRITE = statement(
  'write_backfill',
  `update belfry.backfills b set status = $3, position_at = to_timestamp($4::float8 / 1000), ended_at = to_timestamp($5::float8 / 1000), created = $6,
     left_out = $7, succeeded = $8, failed = $9, canceled = $10
   where b.shard = $1 and b.id = $2`,
)

function backfillOf(row: Row): Backfill {
  const { total, created, leftOut, succeeded, failed, canceled, ...backfill } = COLUMNS.read(row)
  return {
    shard: shardOfJob(backfill.id),
    ...backfill,
    counts: { total, created, leftOut, succeeded, failed, canceled },
  }
}

export async function putBackfill(tx: Queryable, backfill: Backfill): Promise<void> {
  const { shard, id, jobId, tenantId, from, to, scheduleId, concurrency, counts, createdAt, createdBy } = backfill
  const what = [from, to, scheduleId, concurrency, counts.total]
  await tx.query(PUT, [shard, id, jobId, tenantId, ...what, createdAt, createdBy])
}

/** Null: there is none, or it is another tenant's. */
export async function readBackfill(db: Queryable, tenantId: number | null, id: string): Promise<Backfill | null> {
  if (typeof id !== 'string' || !UUID.test(id)) return null
  const [row] = await db.query<Row>(GET, [shardOfJob(id), id, tenantId])
  return row ? backfillOf(row) : null
}

/** Latest first. */
export async function listBackfills(
  db: Queryable,
  tenantId: number | null,
  jobId: string,
  page: PageRequest,
): Promise<Page<BackfillView>> {
  const limit = limitOf(page)
  const [before = AFTER_ALL] = readCursor(page, [UUID]) ?? []
  const rows = await db.query<Row>(LIST, [shardOfJob(jobId), jobId, tenantId, before, limit + 1])
  const found = rows.map((row) => backfillView(backfillOf(row)))
  return pageOf(found, limit, ({ backfillId }) => [backfillId])
}

export async function lockBackfill(tx: Queryable, shard: number, id: string): Promise<Backfill | null> {
  const [row] = await tx.query<Row>(LOCK, [shard, id])
  return row ? backfillOf(row) : null
}

/** Those of a job that are not over, the oldest first. */
export async function lockOpenBackfills(
  tx: Queryable,
  shard: number,
  jobId: string,
  limit: number,
): Promise<Backfill[]> {
  return (await tx.query<Row>(LOCK_OPEN, [shard, jobId, limit])).map(backfillOf)
}

export async function writeBackfill(tx: Queryable, backfill: Backfill): Promise<void> {
  const { shard, id, status, position, endedAt, counts } = backfill
  const { created, leftOut, succeeded, failed, canceled } = counts
  await tx.query(WRITE, [shard, id, status, position, endedAt, created, leftOut, succeeded, failed, canceled])
}
