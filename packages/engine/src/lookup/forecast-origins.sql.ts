import { DEFAULT_TENANT } from '../job/definition.ts'
import { QUEUE_KIND } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { remembered } from '../runtime/maps.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { DUE, type GroupedTimers, MINUTE, type TimerGroup } from './forecast-timers.sql.ts'

/** Definitions that are looked into. Of more timers a part tells where the others call. */
const MAX_LOOKED_INTO = 20_000
/** Different origins of a queue that stand for what was not looked into. */
const MAX_SHARES = 50

/** Whatever stands before the path; it is read as a URL later. */
const beginning = (url: string): string => `split_part(${url}, '/', 1) || '//' || split_part(${url}, '/', 3)`
const originsText = (sample: string, timers: string): string =>
  `select t.schedule_id, ${MINUTE}, (select q.name from belfry.queues q where q.id = t.queue_id), case
       when t.schedule_id is null then (select ${beginning(`(s.definition #>> '{http,url}')`)} from belfry.specs s where s.shard = t.shard and s.job_id = t.job_id)
       else (select ${beginning(`(j.definition #>> '{http,url}')`)} from belfry.jobs j where j.shard = t.shard and j.id = t.job_id) end, count(*)::int
   from (
     select t.schedule_id, t.due_at, t.shard, t.job_id, t.queue_id from belfry.timers t ${sample}
     where ${timers} and ${DUE} and t.queue_id in (select q.id from belfry.queues q where q.kind = ${QUEUE_KIND.http}) limit $3
   ) t group by 1, 2, 3, 4`
const OF_TENANT = statement(
  'forecast_origins_of_tenant',
  originsText('', `t.tenant_id = $2 and t.tenant_id <> ${DEFAULT_TENANT} and t.shard < $4`),
)
const OF_DEFAULT = statement(
  'forecast_origins_of_default',
  originsText('tablesample system ($2)', `t.tenant_id = ${DEFAULT_TENANT}`),
)
const OF_ALL = statement('forecast_origins_of_all', originsText('tablesample system ($2)', 'true'))

/** Where the calls of a group go, and which share of them; empty: it makes none. */
export type Shares = readonly (readonly [origin: string, share: number])[]

export interface Origins {
  of(group: TimerGroup): Shares
  /** False: they are estimates, from a part of the jobs. */
  isComplete: boolean
}

type Row = [
  scheduleId: string | null,
  minute: number | null,
  queue: string | null,
  origin: string | null,
  count: number,
]

export async function readOrigins(
  db: Queryable,
  { tenantId, shards, until }: { tenantId: number | null; shards: number; until: Instant },
  { groups, coverage, timers }: GroupedTimers,
): Promise<Origins> {
  const known = groups.reduce((sum, group) => sum + group.timers, 0)
  const calls = groups.reduce((sum, group) => (group.isHttp ? sum + group.timers : sum), 0)
  if (calls === 0) return { of: () => [], isComplete: known === timers }
  const all = (calls * Math.max(1, timers / known)) / coverage
  const isAll = all <= MAX_LOOKED_INTO
  // A job's shard is chance, so some shards tell what the others look like.
  const wanted = isAll ? shards : Math.max(1, Math.floor((shards * MAX_LOOKED_INTO) / all))
  const percent = isAll ? 100 : (100 * MAX_LOOKED_INTO) / all
  const rows =
    tenantId !== null && tenantId !== DEFAULT_TENANT
      ? await db.query<Row>(OF_TENANT, [until, tenantId, MAX_LOOKED_INTO, wanted])
      : await db.query<Row>(tenantId === null ? OF_ALL : OF_DEFAULT, [until, percent, MAX_LOOKED_INTO])
  return { of: sharesOf(rows), isComplete: isAll && known === timers }
}

/** By schedule where some of it were looked into, else as the calls of the queue go. */
function sharesOf(rows: readonly Row[]): (group: TimerGroup) => Shares {
  const exact = new Map<string, Map<string, number>>()
  const usual = new Map<string, Map<string, number>>()
  const add = (counts: Map<string, Map<string, number>>, key: string, origin: string, count: number) => {
    const own = counts.get(key) ?? new Map<string, number>()
    counts.set(key, own.set(origin, (own.get(origin) ?? 0) + count))
  }
  const origins = new Map<string, string>()
  for (const [scheduleId, minute, queue, text, count] of rows) {
    const origin = remembered(origins, text ?? '', () => originOf(text ?? ''))
    add(exact, `${scheduleId ?? minute} ${queue}`, origin, count)
    add(usual, queue ?? '', origin, count)
  }
  const shares = new Map<ReadonlyMap<string, number>, Shares>()
  return ({ scheduleId, minute, queue, isHttp }) => {
    const counts = isHttp ? (exact.get(`${scheduleId ?? minute} ${queue}`) ?? usual.get(queue)) : undefined
    return counts === undefined ? [] : remembered(shares, counts, () => largest(counts))
  }
}

function largest(counts: ReadonlyMap<string, number>): Shares {
  const kept = [...counts].sort(([, a], [, b]) => b - a).slice(0, MAX_SHARES)
  const sum = kept.reduce((all, [, count]) => all + count, 0)
  return kept.map(([origin, count]) => [origin, count / sum] as const)
}

const originOf = (text: string): string => (URL.canParse(text) ? new URL(text).origin : text)
