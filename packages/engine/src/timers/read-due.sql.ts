import { FIRST_ID } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { TIMERS, type Timer } from './timer.ts'

const READ_DUE = statement(
  'read_due_timers',
  `select ${TIMERS.text}
   from unnest($1::smallint[], $2::float8[], $3::uuid[]) as s (shard, after_due, after_id) cross join lateral (
     select * from belfry.timers t
     where t.shard = s.shard and (t.due_at, t.job_id) > (to_timestamp(s.after_due / 1000), s.after_id)
       and t.due_at <= to_timestamp($4::float8 / 1000) and t.due_at < 'infinity'
     order by t.due_at, t.job_id limit $5) t`,
)

/** A place in a shard's timers, in order of due time: what lies at or before it has been read. */
export interface Position {
  dueAt: Instant
  jobId: string
}

/** Before everything that is due at the instant or later. */
export const positionBefore = (dueAt: Instant): Position => ({ dueAt: dueAt - 1, jobId: FIRST_ID })

/** One chunk of each shard's timers that are due by `until`, in order within the shard, from its position on. */
export async function readDueTimers(
  db: Queryable,
  shards: readonly { shard: number; position: Position }[],
  until: Instant,
  limitPerShard: number,
): Promise<Timer[]> {
  const rows = await db.query<RowOf<Timer>>(READ_DUE, [
    shards.map(({ shard }) => shard),
    shards.map(({ position }) => position.dueAt),
    shards.map(({ position }) => position.jobId),
    until,
    limitPerShard,
  ])
  return rows.map((row) => TIMERS.read(row))
}
