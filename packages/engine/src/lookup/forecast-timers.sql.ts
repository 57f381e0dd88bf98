import { DEFAULT_TENANT } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Timers of one kind: the same schedule (or the same minute, of one-offs), queue, origin, minutes of jitter and runs left. */
export interface TimerGroup {
  /** Null: one-offs. */
  scheduleId: string | null
  /** Of one-offs: the minute since 1970 that they are due in. */
  minute: number | null
  /** A shard that has the schedule. */
  shard: number
  queue: string
  /** `scheme://host` as it stands in the URLs; null: not an HTTP call. */
  origin: string | null
  jitterMinutes: number
  hasJitter: boolean
  remainingRuns: number | null
  timers: number
}

/** Groups that one statement answers: the largest, and of those of equal size, chance decides, for ids are hashes. */
const MAX_GROUPS = 3_000
/** Timers that are looked at of one tenant. */
const MAX_TIMERS = 1_000_000

/** Whatever stands before the path; it is read as a URL later. Only queues for HTTP calls have one. */
const beginning = (url: string): string => `split_part(${url}, '/', 1) || '//' || split_part(${url}, '/', 3)`
const ORIGIN = `case when t.queue_id in (select q.id from belfry.queues q where q.kind = 1) then case
       when t.schedule_id is null then (select ${beginning(`(s.definition #>> '{http,url}')`)} from belfry.specs s where s.shard = t.shard and s.job_id = t.job_id)
       else (select ${beginning(`(j.definition #>> '{http,url}')`)} from belfry.jobs j where j.shard = t.shard and j.id = t.job_id) end end`

/** One walk over the timers. Paused ones are not due at any time; one-offs only until `$1`. */
const groupsText = (timers: string): string =>
  `with grouped as materialized (
     select g.schedule_id, g.minute, min(g.shard) as shard, g.queue_id, g.origin, g.jitter_minutes, g.has_jitter, g.remaining_runs, count(*)::int as timers
     from (
       select t.schedule_id, case when t.schedule_id is null then floor(extract(epoch from t.due_at) / 60)::int end as minute, t.shard, t.queue_id,
         ${ORIGIN} as origin, t.jitter_ms / 60000 as jitter_minutes, t.jitter_ms > 0 as has_jitter, t.remaining_runs
       from (${timers}) t
     ) g group by g.schedule_id, g.minute, g.queue_id, g.origin, g.jitter_minutes, g.has_jitter, g.remaining_runs
   )
   select g.schedule_id, g.minute, g.shard, (select q.name from belfry.queues q where q.id = g.queue_id), g.origin, g.jitter_minutes, g.has_jitter,
     g.remaining_runs, g.timers, (select coalesce(sum(a.timers), 0)::int from grouped a)
   from grouped g order by g.timers desc, g.schedule_id limit ${MAX_GROUPS}`
const DUE = `t.due_at < 'infinity' and (t.schedule_id is not null or t.due_at < to_timestamp($1::float8 / 1000)) and t.nominal_at is not null`
const COLUMNS = 't.schedule_id, t.due_at, t.shard, t.job_id, t.queue_id, t.jitter_ms, t.remaining_runs'

/** By `timers_by_tenant`, which has all but the tenant `default`. */
const OF_TENANT = statement(
  'forecast_of_tenant',
  groupsText(
    `select ${COLUMNS} from belfry.timers t where t.tenant_id = $2 and t.tenant_id <> ${DEFAULT_TENANT} and ${DUE} limit ${MAX_TIMERS}`,
  ),
)
const OF_DEFAULT = statement(
  'forecast_of_default',
  groupsText(
    `select ${COLUMNS} from belfry.timers t where t.shard = $2 and t.tenant_id = ${DEFAULT_TENANT} and ${DUE}`,
  ),
)
const OF_ALL = statement(
  'forecast_of_all',
  groupsText(`select ${COLUMNS} from belfry.timers t where t.shard = $2 and ${DUE}`),
)

export interface GroupedTimers {
  groups: TimerGroup[]
  /** All that were looked at, also those of groups that are left out. */
  timers: number
  /** Which share of the shards was looked at, by chance; what they hold stands for the others. */
  coverage: number
  isComplete: boolean
}

export interface GroupRequest {
  /** Null: all tenants. */
  tenantId: number | null
  shards: number
  /** One-offs are counted until then. */
  until: Instant
  /** Whether there is time for another shard. */
  hasTime(): boolean
}

type Row = [
  ...[scheduleId: string | null, minute: number | null, shard: number, queue: string | null, origin: string | null],
  ...[jitterMinutes: number, hasJitter: boolean, remainingRuns: number | null, timers: number, all: number],
]

/**
 * The timers of a tenant, grouped. Those of the tenant `default`, and of all, have no index of their own: they are read shard
 * by shard for as long as there is time. A job's shard is chance, so some of them tell what the others look like.
 */
export async function groupTimers(db: Queryable, request: GroupRequest): Promise<GroupedTimers> {
  const { tenantId, shards, until, hasTime } = request
  if (tenantId !== null && tenantId !== DEFAULT_TENANT) {
    const rows = await db.query<Row>(OF_TENANT, [until, tenantId])
    const timers = rows[0]?.[9] ?? 0
    return { groups: rows.map(groupOf), timers, coverage: 1, isComplete: timers < MAX_TIMERS }
  }
  const text = tenantId === null ? OF_ALL : OF_DEFAULT
  const merged = new Map<string, TimerGroup>()
  let timers = 0
  let read = 0
  while (read < shards && (read === 0 || hasTime())) {
    const rows = await db.query<Row>(text, [until, read++])
    timers += rows[0]?.[9] ?? 0
    for (const row of rows) add(merged, groupOf(row))
  }
  return { groups: [...merged.values()], timers, coverage: read / shards, isComplete: read === shards }
}

function groupOf(row: Row): TimerGroup {
  const [scheduleId, minute, shard, queue, origin, jitterMinutes, hasJitter, remainingRuns, timers] = row
  return { scheduleId, minute, shard, queue: queue ?? '', origin, jitterMinutes, hasJitter, remainingRuns, timers }
}

function add(groups: Map<string, TimerGroup>, group: TimerGroup): void {
  const { scheduleId, minute, queue, origin, jitterMinutes, hasJitter, remainingRuns, timers } = group
  const key = [scheduleId, minute, queue, origin, jitterMinutes, hasJitter, remainingRuns].join(' ')
  const known = groups.get(key)
  if (known) known.timers += timers
  else groups.set(key, group)
}
