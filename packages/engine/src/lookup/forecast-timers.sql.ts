import { DEFAULT_TENANT } from '../job/definition.ts'
import { QUEUE_KIND } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Timers of one kind: the same schedule (or the same minute, of one-offs), queue, minutes of jitter and runs left. */
export interface TimerGroup {
  /** Null: one-offs. */
  scheduleId: string | null
  /** Of one-offs: the minute since 1970 that they are due in. */
  minute: number | null
  /** A shard that has the schedule. */
  shard: number
  queue: string
  isHttp: boolean
  jitterMinutes: number
  hasJitter: boolean
  remainingRuns: number | null
  timers: number
}

/** Groups that one statement answers: the largest, and of those of equal size, chance decides, for ids are hashes. */
const MAX_GROUPS = 20_000
/** Timers that are looked at; of more, a part tells what the others look like. */
const MAX_TIMERS = 1_000_000

/** Paused timers are not due at any time, one-offs count until `$1`, and what SQL made is no plan yet. */
export const DUE = `t.due_at < 'infinity' and (t.schedule_id is not null or t.due_at < to_timestamp($1::float8 / 1000)) and t.nominal_at is not null`
export const MINUTE = `case when t.schedule_id is null then floor(extract(epoch from t.due_at) / 60)::int end`

/** One walk over the timers, and over nothing else: to look into a million definitions would take a minute. */
const groupsText = (timers: string): string =>
  `with grouped as materialized (
     select t.schedule_id, ${MINUTE} as minute, min(t.shard) as shard, t.queue_id, t.jitter_ms / 60000 as jitter_minutes, t.jitter_ms > 0 as has_jitter,
       t.remaining_runs, count(*)::int as timers
     from (${timers}) t group by 1, 2, 4, 5, 6, 7
   )
   select g.schedule_id, g.minute, g.shard, q.name, q.kind = ${QUEUE_KIND.http}, g.jitter_minutes, g.has_jitter, g.remaining_runs, g.timers,
     (select coalesce(sum(a.timers), 0)::int from grouped a)
   from (select * from grouped g order by g.timers desc, g.schedule_id limit ${MAX_GROUPS}) g
   left join lateral (select q.name, q.kind from belfry.queues q where q.id = g.queue_id limit 1) q on true`
const COLUMNS = 't.schedule_id, t.due_at, t.shard, t.queue_id, t.jitter_ms, t.remaining_runs'

/** By `timers_by_tenant`, which has all but the tenant `default`. */
const OF_TENANT = statement(
  'forecast_of_tenant',
  groupsText(
    `select ${COLUMNS} from belfry.timers t where t.tenant_id = $2 and t.tenant_id <> ${DEFAULT_TENANT} and ${DUE} limit ${MAX_TIMERS}`,
  ),
)
/** They have no index of their own. Block by block, as the table lies on the disk: by index it took ten times as long. */
const OF_DEFAULT = statement(
  'forecast_of_default',
  groupsText(
    `select ${COLUMNS} from belfry.timers t tablesample system ($2) where t.tenant_id = ${DEFAULT_TENANT} and ${DUE}`,
  ),
)
const OF_ALL = statement(
  'forecast_of_all',
  groupsText(`select ${COLUMNS} from belfry.timers t tablesample system ($2) where ${DUE}`),
)
const SIZE = statement(
  'forecast_size',
  `select greatest(c.reltuples, 0)::float8 from pg_class c where c.oid = 'belfry.timers'::regclass`,
)

export interface GroupedTimers {
  groups: TimerGroup[]
  /** All that were looked at, also those of groups that are left out. */
  timers: number
  /** Which share of the table was looked at, by chance; what it holds stands for the rest. */
  coverage: number
  isComplete: boolean
}

export interface GroupRequest {
  /** Null: all tenants. */
  tenantId: number | null
  /** One-offs are counted until then. */
  until: Instant
}

type Row = [
  ...[scheduleId: string | null, minute: number | null, shard: number, queue: string | null, isHttp: boolean | null],
  ...[jitterMinutes: number, hasJitter: boolean, remainingRuns: number | null, timers: number, all: number],
]

/** The timers of a tenant, grouped, in one statement. */
export async function groupTimers(db: Queryable, { tenantId, until }: GroupRequest): Promise<GroupedTimers> {
  const isIndexed = tenantId !== null && tenantId !== DEFAULT_TENANT
  const coverage = isIndexed ? 1 : Math.min(1, MAX_TIMERS / (await sizeOf(db)))
  const rows = isIndexed
    ? await db.query<Row>(OF_TENANT, [until, tenantId])
    : await db.query<Row>(tenantId === null ? OF_ALL : OF_DEFAULT, [until, coverage * 100])
  const timers = rows[0]?.[9] ?? 0
  return { groups: rows.map(groupOf), timers, coverage, isComplete: isIndexed ? timers < MAX_TIMERS : coverage === 1 }
}

/** About how many timers there are in all; at least 1. */
async function sizeOf(db: Queryable): Promise<number> {
  return Math.max(1, (await db.query<[number]>(SIZE, []))[0]?.[0] ?? 1)
}

function groupOf(row: Row): TimerGroup {
  const [scheduleId, minute, shard, queue, isHttp, jitterMinutes, hasJitter, remainingRuns, timers] = row
  const kind = { queue: queue ?? '', isHttp: isHttp === true }
  return { scheduleId, minute, shard, ...kind, jitterMinutes, hasJitter, remainingRuns, timers }
}
