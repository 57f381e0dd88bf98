import { CAUSE, FAILURE_CLASS, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { numbers } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * Runs of recurring jobs that nobody has begun by their start deadline: ready without a worker, or waiting for another run. From
 * the jobs that have such a deadline to their runs; what somebody holds is passed over. A backfill is late on purpose.
 */
const EXPIRE = statement(
  'expire_runs',
  `with held as (
     select r.shard, r.job_id, r.nominal_at from unnest($1::smallint[]) as s (shard)
     cross join lateral (
       select j.shard, j.id, (j.definition ->> 'startDeadlineMs')::float8 as deadline_ms from belfry.jobs j
       where j.shard = s.shard and j.definition ->> 'startDeadlineMs' is not null offset 0) j
     cross join lateral (
       select r.shard, r.job_id, r.nominal_at from belfry.runs r
       where r.shard = j.shard and r.job_id = j.id and r.nominal_at < to_timestamp(($2::float8 - j.deadline_ms) / 1000)
         and r.state <> ${RUN_STATE.leased} and r.attempt = 0 and r.cause <> ${CAUSE.backfill}
       for update skip locked) r
     limit $3
   ), gone as (
     delete from belfry.runs r using held h where r.shard = h.shard and r.job_id = h.job_id and r.nominal_at = h.nominal_at
     returning r.nominal_at, r.due_at, r.job_id, r.tenant_id, r.queue_id, r.job_version, r.shard, r.cause
   )
   insert into belfry.attempts (nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, failure_class, cause, counted,
     final, error)
   select g.nominal_at, g.due_at, to_timestamp($2::float8 / 1000), g.job_id, g.tenant_id, g.queue_id, g.job_version, 0, g.shard, ${OUTCOME.skipped},
     ${FAILURE_CLASS.start_deadline}, g.cause, false, true, 'not started by its deadline'
   from gone g returning job_id`,
)

const MAX_BATCH = 1_000
/** It costs no more than a twentieth of the time, however many jobs have a deadline. */
const SHARE = 20

/** Ends runs that did not start in time. The claim finds them too: this is for those that nobody claims. */
export class Expirer {
  readonly #deps: { db: Queryable; clock: Clock; onGone(jobId: string): void }
  #notBefore = Number.NEGATIVE_INFINITY

  constructor(deps: { db: Queryable; clock: Clock; onGone(jobId: string): void }) {
    this.#deps = deps
  }

  /** Looks at these shards, unless it did so just now; answers how many ended. */
  async expire(shards: readonly number[], databaseNow: Instant): Promise<number> {
    const { db, clock, onGone } = this.#deps
    const begun = clock.now()
    if (begun < this.#notBefore || shards.length === 0) return 0
    const gone = (await db.query<[string]>(EXPIRE, [numbers(shards), databaseNow, MAX_BATCH])).flat()
    for (const jobId of new Set(gone)) onGone(jobId)
    this.#notBefore = gone.length === MAX_BATCH ? begun : begun + SHARE * (clock.now() - begun)
    return gone.length
  }
}
