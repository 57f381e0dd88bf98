import { shardOfJob } from '../job/ids.ts'
import { CAUSE, FAILURE_CLASS, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import { type Piece, Rounds } from '../runtime/rounds.ts'
import type { PulseAnswer } from '../shards/pulse.sql.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Queryable } from '../store/database.ts'
import { ENDED_RUN, recordUnrun } from '../store/record-ends.ts'
import { statement } from '../store/statement.ts'

/**
 * Runs of recurring jobs that nobody has begun by their start deadline: ready without a worker, or waiting for another run. From
 * job to job that has such a deadline and is not canceled (that ends what has not begun; a job that is completed may have left its
 * last runs); what somebody holds is passed over. A backfill is late on purpose. A run that changed under the lock stays for the
 * next round, so the ctid is good enough.
 */
const EXPIRE = statement(
  'expire_runs',
  `with visited as materialized (
     select s.shard, j.id, j.deadline_ms, row_number() over (partition by s.shard order by j.id) = $3::int as is_last
     from unnest($1::smallint[], $2::uuid[]) as s (shard, after)
     cross join lateral (
       select j.id, (j.definition ->> 'startDeadlineMs')::float8 as deadline_ms from belfry.jobs j
       where j.shard = s.shard and j.id > s.after and j.status < 3 and j.definition ->> 'startDeadlineMs' is not null
       order by j.id limit $3::int) j
   ), held as (
     select r.ctid from visited v cross join lateral (
       select r.ctid from belfry.runs r
       where r.shard = v.shard and r.job_id = v.id and r.nominal_at < to_timestamp(($4::float8 - v.deadline_ms) / 1000)
         and r.state <> ${RUN_STATE.leased} and r.attempt = 0 and r.cause <> ${CAUSE.backfill}
       order by r.nominal_at limit $5::int for update skip locked) r
     limit $5::int
   ), gone as (
     delete from belfry.runs r where r.ctid = any (array(select h.ctid from held h))
     returning ${ENDED_RUN}
   ), ${recordUnrun('$4', { outcome: OUTCOME.skipped, failureClass: FAILURE_CLASS.start_deadline, error: "'not started by its deadline'" })}
   select g.job_id, true from gone g union all select v.id, false from visited v where v.is_last`,
)

const MAX_VISITED = 1_000
const MAX_ENDED = 1_000
const LONGEST_WAIT_MS = 1_000

/** Ends runs that did not start in time. The claim finds them too: this is for those that nobody claims. */
export class Expirer implements Step {
  readonly name = 'expirer'
  readonly role = 'promoter'
  readonly #deps: { db: Queryable; clock: Clock; wakeups: Wakeups }
  readonly #rounds: Rounds
  #hasDeadlines = false

  constructor(deps: { db: Queryable; clock: Clock; wakeups: Wakeups }) {
    this.#deps = deps
    this.#rounds = new Rounds(deps.clock, { maxVisited: MAX_VISITED })
  }

  own(shards: readonly number[]): void {
    this.#rounds.own(shards)
  }

  /** Whether any job says how late its runs may start, in whatever shard; answers whether to look. */
  saw({ hasStartDeadlines }: Pick<PulseAnswer, 'hasStartDeadlines'>): boolean {
    this.#hasDeadlines = hasStartDeadlines
    return hasStartDeadlines
  }

  restart(): void {
    this.#rounds.restart()
  }

  async runOnce(): Promise<{ waitMs: number; ended: number }> {
    if (!this.#hasDeadlines) return { waitMs: LONGEST_WAIT_MS, ended: 0 }
    let ended = 0
    const { waitMs } = await this.#rounds.next(async (piece) => {
      const done = await this.#expire(piece)
      ended = done.ended
      return done.goOn
    })
    return { waitMs, ended }
  }

  async #expire({ shards, after, perShard }: Piece): Promise<{ ended: number; goOn: Map<number, string> }> {
    const { db, clock, wakeups } = this.#deps
    const values = [shards, after, perShard, clock.now(), MAX_ENDED]
    const rows = await db.query<[string, boolean]>(EXPIRE, values)
    const gone = rows.filter(([, isGone]) => isGone).map(([jobId]) => jobId)
    for (const jobId of new Set(gone)) wakeups.gone(jobId)
    // There may be more of the same jobs: what has ended is not met again.
    if (gone.length === MAX_ENDED)
      return { ended: gone.length, goOn: new Map(shards.map((shard, i) => [shard, after[i] as string])) }
    const last = rows.filter(([, isGone]) => !isGone).map(([jobId]): [number, string] => [shardOfJob(jobId), jobId])
    return { ended: gone.length, goOn: new Map(last) }
  }
}
