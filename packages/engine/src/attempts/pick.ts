import { KEYED, LIMIT_KIND, RUN_STATE } from '../job/states.ts'

/** Runs that have a key are picked apart: their keys' limits are looked at before they are leased. Each kind has an index of its own. */
export type Kind = 'plain' | 'keyed'

/** A priority of one kind. */
export interface Level {
  priority: number
  /** No ready run of this level is known to have a smaller turn. */
  watermark: number
}

const IS_OF: Record<Kind, string> = { plain: `r.delivery < ${KEYED}`, keyed: `r.delivery >= ${KEYED}` }
const LAST_TURN = (2n ** 63n - 1n).toString()

/** A queue that has a limit is claimed from by the transaction that holds the limit, whatever the node of another statement knows. */
export const HAS_NO_LIMIT = `not exists (select from belfry.limits l where l.kind = ${LIMIT_KIND.queue} and l.key = $1)`

/**
 * The text that picks ready runs, in order of turn over all levels, from each level's watermark on; rows that another transaction
 * holds are passed over. $1 is the queue, $2 and $3 are the priorities and watermarks of its levels, $4 is how many runs at most.
 *
 * Of several levels the merged order ends at a horizon, and no row behind that is touched. One level alone needs none.
 */
export function pickRuns(kind: Kind, pick: { columns: string; onlyIf: string; only?: string }): string {
  const ready = `r.queue_id = $1 and r.state = ${RUN_STATE.ready} and ${IS_OF[kind]} and r.priority = level.priority
         and r.turn >= level.watermark${pick.only ? ` and ${pick.only}` : ''}`
  return `level as (
     select * from unnest($2::smallint[], $3::bigint[]) as level (priority, watermark) where ${pick.onlyIf}
   ), horizon as (
     select case when cardinality($2::smallint[]) = 1 then ${LAST_TURN} else (
       select max(first.turn) from (
         select head.turn from level cross join lateral (
           select r.turn from belfry.runs r where ${ready} order by r.turn limit $4) head
         order by head.turn limit $4) first) end as turn
   ), picked as (
     select head.* from horizon cross join level cross join lateral (
       select ${pick.columns} from belfry.runs r where ${ready} and r.turn <= horizon.turn
       order by r.turn limit $4 for update skip locked) head
   )`
}

export const levelArrays = (levels: readonly Level[]): [priorities: number[], watermarks: number[]] => [
  levels.map(({ priority }) => priority),
  levels.map(({ watermark }) => watermark),
]
