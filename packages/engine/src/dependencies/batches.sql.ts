import { isJobId, shardOfJob } from '../job/ids.ts'
import { OUTCOME } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { tellDependents } from '../store/tell-dependents.ts'

/** Jobs of one call may have met jobs of so many others. */
const MAX_CANDIDATES = 100

const INSERT = statement(
  'insert_batch',
  `insert into belfry.batches (created_at, id, on_finish, tenant_id, total, shard, name, created_by)
   values (to_timestamp($1::float8 / 1000), $2, $3, $4, $5, $6, $7, $8)`,
)
/** Counts what has ended (or, with negative numbers, was opened again). The jobs that wait for the batch are told when nothing is open. */
const COUNT = statement(
  'count_in_batches',
  `with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::int[], $4::int[], $5::int[], $6::int[]) as u (shard, id, succeeded, failed, canceled, skipped)
   ), held as (
     select u.* from u cross join lateral (
       select from belfry.batches b where b.shard = u.shard and b.id = u.id limit 1 for update) b
   ), counted as (
     update belfry.batches b set succeeded = b.succeeded + h.succeeded, failed = b.failed + h.failed, canceled = b.canceled + h.canceled,
       skipped = b.skipped + h.skipped,
       finished_at = case when b.succeeded + h.succeeded + b.failed + h.failed + b.canceled + h.canceled + b.skipped + h.skipped >= b.total
         then to_timestamp($7::float8 / 1000) end
     from held h where b.shard = h.shard and b.id = h.id
     returning b.shard, b.id as job_id, b.created_at as nominal_at, true as one_off, b.on_finish is not null and b.finished_at is not null as has_dependents
   ), told as (
     ${tellDependents('counted', { number: '0', outcome: OUTCOME.succeeded })} returning 1
   ) select count(*)::int from told`,
)
const BATCH = columns({
  tenantId: column<number>('b.tenant_id'),
  name: column<string | null>('b.name'),
  total: column<number>('b.total'),
  succeeded: column<number>('b.succeeded'),
  failed: column<number>('b.failed'),
  canceled: column<number>('b.canceled'),
  skipped: column<number>('b.skipped'),
  onFinishJobId: column<string | null>('b.on_finish'),
  createdAt: column<Instant>('b.created_at'),
  createdBy: column<string | null>('b.created_by'),
  finishedAt: column<Instant | null>('b.finished_at'),
})
type Row = RowOf<Read<typeof BATCH>>
const GET = statement('get_batch', `select ${BATCH.text} from belfry.batches b where b.shard = $1 and b.id = $2`)
/** The batches that these one-offs were made in, or run at the end of. */
const OF_JOBS = statement(
  'batches_of_jobs',
  `select distinct s.batch_id from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id) cross join lateral (
     select coalesce(s.definition ->> 'batchId', s.definition -> 'after' ->> 'batch') as batch_id
     from belfry.specs s where s.shard = u.shard and s.job_id = u.job_id limit 1) s
   where s.batch_id is not null limit ${MAX_CANDIDATES}`,
)
const PURGE = statement(
  'purge_batches',
  `with old as (
     select b.shard, b.id from belfry.batches b where b.created_at < to_timestamp($1::float8 / 1000) and b.finished_at < to_timestamp($1::float8 / 1000)
     order by b.created_at limit $2 for update skip locked
   ), edges as (
     delete from belfry.edges e using old o where e.child = o.id and e.tenant_id > 0
   )
   delete from belfry.batches b using old o where b.shard = o.shard and b.id = o.id`,
)

export interface NewBatch {
  id: string
  tenantId: number
  name: string | null
  /** The job that runs when all others have finished. */
  onFinish: string | null
  total: number
  createdBy: string | null
}

export async function insertBatch(tx: Queryable, batch: NewBatch, now: Instant): Promise<void> {
  const { id, onFinish, tenantId, total, name, createdBy } = batch
  await tx.execute(INSERT, [now, id, onFinish, tenantId, total, shardOfJob(id), name, createdBy])
}

/**
 * The batch of a call that was made before, by the jobs that it is answered with. Some of them may have been there already when
 * it was made, and be of other batches: those have another name or another number of jobs.
 */
export async function batchOfCall(
  tx: Queryable,
  jobIds: readonly string[],
  { name, total }: Pick<NewBatch, 'name' | 'total'>,
): Promise<string | null> {
  if (jobIds.length === 0) return null
  const batches = await tx.query<[string]>(OF_JOBS, [jobIds.map(shardOfJob), jobIds])
  for (const id of batches.flat().sort()) {
    const batch = await getBatch(tx, null, id)
    if (batch?.name === name && batch.total === total) return id
  }
  return null
}

/** How many jobs of a batch have ended in each way. */
export type Counts = Record<'succeeded' | 'failed' | 'canceled' | 'skipped', number>

export const noCounts = (): Counts => ({ succeeded: 0, failed: 0, canceled: 0, skipped: 0 })

export function countOf(outcome: number): keyof Counts {
  if (outcome === OUTCOME.succeeded) return 'succeeded'
  if (outcome === OUTCOME.canceled) return 'canceled'
  return outcome === OUTCOME.skipped ? 'skipped' : 'failed'
}

/** Answers how many of the batches have nothing open any more and a job that waits for that. */
export async function countInBatches(
  tx: Queryable,
  counts: ReadonlyMap<string, Counts>,
  now: Instant,
): Promise<number> {
  if (counts.size === 0) return 0
  const batches = [...counts].sort(([a], [b]) => shardOfJob(a) - shardOfJob(b) || (a < b ? -1 : 1))
  const [row] = await tx.query<[number]>(COUNT, [
    batches.map(([id]) => shardOfJob(id)),
    batches.map(([id]) => id),
    batches.map(([, { succeeded }]) => succeeded),
    batches.map(([, { failed }]) => failed),
    batches.map(([, { canceled }]) => canceled),
    batches.map(([, { skipped }]) => skipped),
    now,
  ])
  return row?.[0] ?? 0
}

/** A group of jobs that were created together. */
export interface BatchView extends Counts {
  batchId: string
  name: string | null
  total: number
  open: number
  /** From 0 to 1: how many of the jobs have ended. */
  progress: number
  /** The job that runs when all others have finished. */
  onFinishJobId: string | null
  createdAt: Date
  createdBy: string | null
  /** When the last of its jobs ended; null while one is open, or open again. */
  finishedAt: Date | null
}

/** Null: there is no such batch, or it is another tenant's. */
export async function getBatch(db: Queryable, tenantId: number | null, id: string): Promise<BatchView | null> {
  if (!isJobId(id)) return null
  const [row] = await db.query<Row>(GET, [shardOfJob(id), id])
  if (row === undefined) return null
  const { tenantId: owner, createdAt, finishedAt, ...batch } = BATCH.read(row)
  if (tenantId !== null && owner !== tenantId) return null
  const { total, succeeded, failed, canceled, skipped } = batch
  const ended = succeeded + failed + canceled + skipped
  return {
    batchId: id,
    ...batch,
    open: total - ended,
    progress: total === 0 ? 1 : Math.floor((ended / total) * 10_000) / 10_000,
    createdAt: new Date(createdAt),
    finishedAt: finishedAt === null ? null : new Date(finishedAt),
  }
}

const PURGE_BATCH = 100
/** For one call: the rest is for the next one. */
const MAX_PURGES = 100

/** Removes batches whose last job ended before history begins. */
export async function purgeBatches(db: Queryable, before: Instant): Promise<void> {
  for (let i = 0; i < MAX_PURGES; i++) if ((await db.execute(PURGE, [before, PURGE_BATCH])) < PURGE_BATCH) return
}
