import { LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import { type Piece, Rounds } from '../runtime/rounds.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { AHEAD_MS } from './space-limited.sql.ts'

/**
 * Keys of which runs wait though a slot is free, and the rate allows one soon. From key to key along `runs_limited`, however many
 * runs of one wait, and no further than the last that may be visited: that one is answered too, as the place to go on from.
 */
const SWEEP = statement(
  'sweep_limited_runs',
  `select s.shard, v.key, v.n = $3::int, i.is_free
   from unnest($1::smallint[], $2::bigint[]) as s (shard, after)
   cross join lateral (
     with recursive key as (
       (select r.limit_key as key, 1 as n from belfry.runs r
        where r.shard = s.shard and r.state = ${RUN_STATE.limited} and r.limit_key > s.after order by r.limit_key limit 1)
       union all
       select further.limit_key, key.n + 1 from key cross join lateral (
         select r.limit_key from belfry.runs r
         where r.shard = s.shard and r.state = ${RUN_STATE.limited} and r.limit_key > key.key order by r.limit_key limit 1) further
       where key.n < $3::int
     )
     select key.key, key.n from key) v
   left join lateral (
     select l.max_running, l.paused_at, l.rate_count, l.used_at, l.rate_at + (1 - l.rate_burst) * (l.rate_period_ms * 1000.0 / l.rate_count) as next_at
     from belfry.limits l where l.shard = s.shard and l.kind = ${LIMIT_KIND.key} and l.key = v.key limit 1) l on true
   cross join lateral (
     select l.paused_at is null
       and (l.rate_count is null or (l.next_at <= ($4::float8 + ${AHEAD_MS}) * 1000 and l.used_at <= to_timestamp(($4::float8 + ${AHEAD_MS / 2}) / 1000)))
       and (l.max_running is null or l.max_running > (
         select count(*) from (
           select from belfry.runs r where r.shard = s.shard and r.limit_key = v.key and r.state = ${RUN_STATE.leased}
           limit l.max_running) c)) as is_free
     offset 0) i
   where i.is_free or v.n = $3::int`,
)

const MAX_VISITED = 1_000
const LONGEST_WAIT_MS = 1_000
const BEFORE_ALL = (-(2n ** 63n)).toString()

/** Finds keys whose runs wait for nothing any more, which nobody has been told of: whoever was to tell has died, or did not know. */
export class LimitSweep implements Step {
  readonly #deps: { db: Queryable; clock: Clock; look(shard: number, key: string): void }
  readonly #rounds: Rounds
  #owned: ReadonlySet<number> = new Set()
  #hasLimited = false

  constructor(deps: { db: Queryable; clock: Clock; look(shard: number, key: string): void }) {
    this.#deps = deps
    this.#rounds = new Rounds(deps.clock, { maxVisited: MAX_VISITED, first: BEFORE_ALL })
  }

  /** Where shards change hands a process has died, or begun: what it knew of is looked for without pauses, once. */
  own(shards: readonly number[]): void {
    const isNews = shards.some((shard) => !this.#owned.has(shard))
    this.#owned = new Set(shards)
    this.#rounds.own(shards)
    if (isNews) this.#rounds.hurry()
  }

  /** Whether any run waits for a slot, in whatever shard; answers whether to look. */
  saw(hasLimited: boolean): boolean {
    this.#hasLimited = hasLimited
    return hasLimited
  }

  restart(): void {
    this.#rounds.restart()
  }

  async runOnce(): Promise<{ waitMs: number }> {
    if (!this.#hasLimited) return { waitMs: LONGEST_WAIT_MS }
    return this.#rounds.next((piece) => this.#sweep(piece))
  }

  async #sweep({ shards, after, perShard }: Piece): Promise<Map<number, string>> {
    const { db, clock, look } = this.#deps
    const values = [shards, after, perShard, clock.now()]
    const rows = await db.query<[number, string, boolean, boolean]>(SWEEP, values)
    for (const [shard, key, , isFree] of rows) if (isFree) look(shard, key)
    return new Map(rows.filter(([, , isLast]) => isLast).map(([shard, key]) => [shard, key]))
  }
}
