import { shardOfJob } from '../job/ids.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import { type Piece, Rounds } from '../runtime/rounds.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * Jobs with a blocked run of which nothing else is alive. From job to job along `runs_blocked`, however many runs of one wait, and
 * no further than the last that may be visited: that one is answered too, as the place to go on from.
 */
const SWEEP = statement(
  'sweep_blocked_runs',
  `select v.job_id, v.n = $3::int, i.is_idle
   from unnest($1::smallint[], $2::uuid[]) as s (shard, after)
   cross join lateral (
     with recursive job as (
       (select r.job_id, 1 as n from belfry.runs r where r.shard = s.shard and r.state = ${RUN_STATE.blocked} and r.job_id > s.after
        order by r.job_id limit 1)
       union all
       select further.job_id, job.n + 1 from job cross join lateral (
         select r.job_id from belfry.runs r where r.shard = s.shard and r.state = ${RUN_STATE.blocked} and r.job_id > job.job_id
         order by r.job_id limit 1) further
       where job.n < $3::int
     )
     select job.job_id, job.n from job) v
   cross join lateral (
     select not exists (
       select from belfry.runs r where r.shard = s.shard and r.job_id = v.job_id and r.state <> ${RUN_STATE.blocked} offset 0) as is_idle
     offset 0) i
   where i.is_idle or v.n = $3::int`,
)

const MAX_VISITED = 1_000
const LONGEST_WAIT_MS = 1_000

/** Finds jobs whose next run waits for nothing any more, which nobody has been told of: whoever was to tell has died, or did not know. */
export class BlockedSweep implements Step {
  readonly #deps: { db: Queryable; look(jobId: string): void }
  readonly #rounds: Rounds
  #hasBlocked = false

  constructor(deps: { db: Queryable; clock: Clock; look(jobId: string): void }) {
    this.#deps = deps
    this.#rounds = new Rounds(deps.clock, { maxVisited: MAX_VISITED })
  }

  own(shards: readonly number[]): void {
    this.#rounds.own(shards)
  }

  /** Whether any run is blocked, in whatever shard; answers whether to look. */
  saw(hasBlocked: boolean): boolean {
    this.#hasBlocked = hasBlocked
    return hasBlocked
  }

  restart(): void {
    this.#rounds.restart()
  }

  async runOnce(): Promise<{ waitMs: number }> {
    if (!this.#hasBlocked) return { waitMs: LONGEST_WAIT_MS }
    return this.#rounds.next((piece) => this.#sweep(piece))
  }

  async #sweep({ shards, after, perShard }: Piece): Promise<Map<number, string>> {
    const rows = await this.#deps.db.query<[string, boolean, boolean]>(SWEEP, [shards, after, perShard])
    for (const [jobId, , isIdle] of rows) if (isIdle) this.#deps.look(jobId)
    return new Map(rows.filter(([, isLast]) => isLast).map(([jobId]) => [shardOfJob(jobId), jobId]))
  }
}
