import { FAILURE_CLASS } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { placePutAside, setDueOfPlaced } from './put-aside.sql.ts'

/** Why a run waits that the limit of an origin has put aside: by these words it is found again. */
export const slotsError = (origin: string, limit: number): string =>
  `${startOfSlots(origin)}${limit} ${limit === 1 ? 'run' : 'runs'} at a time, and so many are under way`
export const rateError = (origin: string): string => `the rate limit of ${origin} is used up`
const startOfSlots = (origin: string): string => `${origin} is limited to `

/** Nobody is put aside for longer: things change. */
export const LONGEST_AWAY_MS = 300_000

const MAX_LOOKED_AT = 5_000
const BRING_FORWARD = statement(
  'bring_limited_forward',
  `with ${placePutAside({
    due: `r.due_at > to_timestamp($5::float8 / 1000) and r.due_at <= to_timestamp(($5::float8 + ${LONGEST_AWAY_MS}) / 1000)`,
    why: `a.failure_class = ${FAILURE_CLASS.rate_limited} and (a.error = $3 or starts_with(a.error, $4))`,
    limit: '$8',
    lookedAt: MAX_LOOKED_AT,
  })}
   ${setDueOfPlaced('least(r.due_at, to_timestamp(($6::float8 + p.place * $7::float8) / 1000))')}`,
)

export interface PutAside {
  tenantId: number
  origin: string
  /** By the number of calls at a time alone, or by the rate too: those have been given their exact times. */
  by: 'slots' | 'any'
  /** In the order in which they are looked through. */
  shards: readonly number[]
  limit: number
}

/** Lets calls that a limit has put aside until after `dueAfter` come one behind the other from `from` on. */
export async function bringLimitedForward(
  db: Queryable,
  { tenantId, origin, by, shards, limit }: PutAside,
  { dueAfter, from, spacingMs }: { dueAfter: Instant; from: Instant; spacingMs: number },
): Promise<{ shard: number; dueAt: Instant }[]> {
  const rows = await db.query<[number, Instant]>(BRING_FORWARD, [
    shards,
    tenantId,
    by === 'any' ? rateError(origin) : null,
    startOfSlots(origin),
    dueAfter,
    from,
    spacingMs,
    limit,
  ])
  return rows.map(([shard, dueAt]) => ({ shard, dueAt }))
}
