import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const BEFORE_ALL = '00000000-0000-0000-0000-000000000000'
/** Jobs of one step, over all shards. */
const STEP = 500

const READ = statement(
  'walk_open_backfills',
  `select s.shard, b.job_id from unnest($1::smallint[], $2::uuid[]) as s (shard, after_id) cross join lateral (
     select distinct b.job_id from belfry.backfills b
     where b.shard = s.shard and b.job_id > s.after_id and b.ended_at is null order by b.job_id limit $3) b`,
)

/**
 * Goes round the jobs that have open backfills, some of each shard at a time: however many one tenant has, the others have
 * their turn in the same round.
 */
export class OpenWalk {
  #after = new Map<number, string>()

  async next(db: Queryable, shards: ReadonlySet<number>): Promise<string[]> {
    if (shards.size === 0) return []
    const list = [...shards]
    const limit = Math.ceil(STEP / list.length)
    const after = list.map((shard) => this.#after.get(shard) ?? BEFORE_ALL)
    const rows = await db.query<[number, string]>(READ, [list, after, limit])
    const found = new Map<number, string[]>()
    for (const [shard, jobId] of rows) found.set(shard, [...(found.get(shard) ?? []), jobId])
    // A shard with fewer has come to its end, and begins anew; so does one that was given away and came back.
    this.#after = new Map()
    for (const [shard, jobIds] of found) {
      if (jobIds.length === limit)
        this.#after.set(
          shard,
          jobIds.reduce((a, b) => (a > b ? a : b)),
        )
    }
    return rows.map(([, jobId]) => jobId)
  }
}
