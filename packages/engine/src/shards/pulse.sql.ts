import { PRIORITIES } from '../job/level.ts'
import { KEYED, LIMIT_KIND, QUEUE_KIND, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { columns, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { NEEDED_MIGRATION, NEWEST_MIGRATION, type SchemaVersion } from '../store/schema-state.sql.ts'
import { statement } from '../store/statement.ts'
import { type FleetTurns, fleetTurns } from './fleet-turns.sql.ts'
import { MAX_TOLD, PAUSE_KIND, type PauseMark } from './paused.ts'
import type { QueueSettings } from './queue-settings.ts'
import { PROMOTER_BIT } from './roles.ts'
import type { TenantLimits } from './tenant-limits.ts'

/** Per queue and priority the lowest turn of its ready runs. Those that have a key have an index of their own. */
const headsOf = (queueIds: string, delivery: string): string =>
  `array(select (select r.turn from belfry.runs r where r.queue_id = q.queue_id and r.state = ${RUN_STATE.ready} and r.delivery ${delivery}
         and r.priority = p.priority order by r.turn limit 1)
       from unnest(${queueIds}::int[]) with ordinality as q (queue_id, n) cross join generate_series(0, 9) as p (priority) order by q.n, p.priority)`

const PLAIN = `< ${KEYED}`
const WITH_KEY = `>= ${KEYED}`

/** Rows as a JSON text, each an object with the names of its columns. */
const listed = (rows: string): string => `(select coalesce(json_agg(x), '[]') from (select ${rows}) x)::text`

/** Calendars that have changed, of one pulse; the rest comes when these are done. */
const MAX_CALENDARS = 1_000

/** Pauses, settings of queues and limits of tenants, of one pulse, each: no more are made but by those who count at the same time. */
const MAX_SETTINGS = MAX_TOLD + 1_000
/** A key's pause stands in its limit; its end is told so that it is forgotten. */
const PAUSES =
  listed(`p.id, p.kind, p.tenant_id as "tenantId", p.name, (extract(epoch from p.ended_at) * 1000)::bigint as "endedAt"
       from belfry.pauses p where p.kind <> ${PAUSE_KIND.key} or p.ended_at is not null order by p.kind = ${PAUSE_KIND.key}, p.paused_at limit ${MAX_SETTINGS}`)
const QUEUE_SETTINGS = listed(`q.id, q.max_depth as "maxDepth", q.max_age_ms as "maxAgeMs", q.jitter_ms as "jitterMs"
       from belfry.queues q where q.max_depth is not null or q.max_age_ms is not null or q.jitter_ms is not null order by q.id limit ${MAX_SETTINGS}`)
const TENANT_LIMITS = listed(`t.id, t.max_waiting_runs as "maxDepth", t.max_waiting_seconds * 1000::bigint as "maxAgeMs"
       from belfry.tenants t where t.max_waiting_runs is not null or t.max_waiting_seconds is not null order by t.id limit ${MAX_SETTINGS}`)

/** Of the answer, what comes as the text of an array, or of JSON. */
type AsText =
  | ('liveNodes' | 'promoters' | 'pausedQueueIds' | 'deletedQueueIds' | 'limitedQueueIds' | 'changedCalendars')
  | ('timersDue' | 'waitingDue' | 'heads' | 'fleet' | 'pauses' | 'queueSettings' | 'tenantLimits')

type Pulsed = Omit<PulseAnswer, AsText | 'schema'> &
  Record<AsText | 'headsKeyed', string> &
  Record<'newestMigration' | 'neededMigration', number>

const PULSED = columns<Pulsed>({
  now: 'extract(epoch from clock.now)::float8 * 1000',
  lastPulseAt: '(select extract(epoch from max(n.pulsed_at))::float8 * 1000 from belfry.nodes n)',
  liveNodes: `array(select n.id from belfry.nodes n where n.pulsed_at > clock.now - interval '2500 ms' or (n.shard = $1 and n.id = $2))::text[]`,
  oldestPulseAt: `(select extract(epoch from min(n.pulsed_at))::float8 * 1000 from belfry.nodes n where n.pulsed_at > clock.now - interval '2500 ms' and n.id <> $2)`,
  graceUntil: `(select extract(epoch from (m.value #>> '{}')::timestamptz)::float8 * 1000 from belfry.meta m where m.key = 'grace_until')`,
  timersDue: `array(select coalesce((select extract(epoch from t.due_at)::float8 * 1000 from belfry.timers t
       where t.shard = s.shard and t.due_at >= to_timestamp(s.after / 1000) and t.due_at < 'infinity' order by t.due_at limit 1), 'Infinity')
     from unnest($4::smallint[], $5::float8[]) with ordinality as s (shard, after, n) order by s.n)`,
  waitingDue: `array(select coalesce((select extract(epoch from r.due_at)::float8 * 1000 from belfry.runs r
       where r.shard = s.shard and r.state = ${RUN_STATE.waiting} order by r.due_at limit 1), 'Infinity')
     from unnest($4::smallint[]) with ordinality as s (shard, n) order by s.n)`,
  hasExpired: `exists (select from belfry.runs r where r.state = ${RUN_STATE.leased} and r.lease_until <= clock.now)`,
  heads: headsOf('$6', PLAIN),
  headsKeyed: headsOf('$6', WITH_KEY),
  promoters: `array(select n.id from belfry.nodes n where n.pulsed_at > clock.now - interval '2500 ms' and n.roles & ${PROMOTER_BIT} > 0)::text[]`,
  pausedQueueIds: `array(select q.id from belfry.queues q where q.paused_at is not null
     union select q.id from belfry.pauses p cross join lateral (
       select q.id from belfry.queues q where q.tenant_id = p.tenant_id and not q.shared) q
     where p.kind = ${PAUSE_KIND.tenant} and p.ended_at is null)`,
  deletedQueueIds: `array(select q.id from belfry.queues q where q.deleted_at > clock.now - interval '1 minute')`,
  httpQueues: `(select count(*)::int from belfry.queues q where q.kind = ${QUEUE_KIND.http})`,
  hasBackfills:
    '(select true from belfry.backfills b where b.ended_at is null order by b.shard, b.job_id limit 1) is not null',
  hasBlocked: `exists (select from belfry.runs r where r.state = ${RUN_STATE.blocked})`,
  changedCalendars:
    listed(`c.tenant_id as "tenantId", c.version, c.name from belfry.calendars c where c.replanned < c.version
     order by c.updated_at limit ${MAX_CALENDARS}`),
  zoneData: `(select m.value #>> '{}' from belfry.meta m where m.key = 'zone_data')`,
  hasStartDeadlines: `exists (select from belfry.jobs j where j.status < 3 and j.definition ->> 'startDeadlineMs' is not null)`,
  hasLimited: `exists (select from belfry.runs r where r.state = ${RUN_STATE.limited})`,
  limitedQueueIds: `array(select l.key from belfry.limits l where l.kind = ${LIMIT_KIND.queue} and l.key = any($9::bigint[]))`,
  fleet: fleetTurns('$2'),
  pauses: PAUSES,
  queueSettings: QUEUE_SETTINGS,
  tenantLimits: TENANT_LIMITS,
  hasOutbox: 'exists (select from belfry.outbox)',
  newestMigration: NEWEST_MIGRATION,
  neededMigration: NEEDED_MIGRATION,
})

/**
 * The one statement that a process sends every second: it renews the node's row and answers everything the other loops may
 * have to do. Instants come back as milliseconds, in the order of the shards and queue levels that were asked about.
 */
const PULSE = statement(
  'pulse',
  `with clock as (
     select to_timestamp(belfry.clock() / 1000) as now
   ), beat as (
     insert into belfry.nodes (pulsed_at, started_at, id, shard, roles, address, charges)
       select now, to_timestamp($3::float8 / 1000), $2, $1, $7, $8, $10::json from clock
     on conflict (shard, id) do update set pulsed_at = excluded.pulsed_at, roles = excluded.roles, address = excluded.address, charges = excluded.charges
   )
   select ${PULSED.text} from clock`,
)
const HEADS = statement('read_heads', `select ${headsOf('$1', PLAIN)}, ${headsOf('$1', WITH_KEY)}`)
const GRACE = statement(
  'grant_grace',
  `insert into belfry.meta (key, value) values ('grace_until', to_jsonb($1::text)) on conflict (key) do update set value = excluded.value`,
)
const LEAVE = statement('leave', 'delete from belfry.nodes n where n.shard = $1 and n.id = $2')
const FORGET = statement(
  'forget_nodes',
  `delete from belfry.nodes n where n.shard = any($1::smallint[]) and n.pulsed_at < to_timestamp($2::float8 / 1000)`,
)

export interface PulseQuestion {
  nodeShard: number
  nodeId: string
  roles: number
  address: string | null
  startedAt: Instant
  shards: readonly number[]
  /** Per shard: timers before this have been read already. Minus infinity: a sweep. */
  timersAfter: readonly Instant[]
  queueIds: readonly number[]
  /** All that this node serves, whether it asks about their runs or not. */
  servedQueueIds: readonly number[]
  /** What this node tells the others of whose turn it is; null: nothing. */
  charges: unknown
}

export interface PulseAnswer {
  now: Instant
  /** When any node last pulsed before this pulse; null: never. */
  lastPulseAt: Instant | null
  liveNodes: string[]
  /** Those of them that promote. */
  promoters: string[]
  pausedQueueIds: number[]
  /** Those of the last minute. */
  deletedQueueIds: number[]
  /** How many queues are for HTTP calls. */
  httpQueues: number
  /** Calendars whose jobs may not know of the last change. */
  changedCalendars: { tenantId: number; version: number; name: string }[]
  /** The zone data by which all timers are planned; null: nobody has said so yet. */
  zoneData: string | null
  /** Some job is being backfilled, in whatever shard. */
  hasBackfills: boolean
  /** The oldest pulse of another live node: unless it pulses again it is dead 2.5 s later. */
  oldestPulseAt: Instant | null
  graceUntil: Instant | null
  timersDue: Instant[]
  waitingDue: Instant[]
  /** Some lease has expired, in whatever shard. */
  hasExpired: boolean
  /** Per queue, per level: the lowest turn, or null. */
  heads: (number | null)[][]
  /** Some run waits for another of its job, in whatever shard. */
  hasBlocked: boolean
  /** Some recurring job says how late its runs may start. */
  hasStartDeadlines: boolean
  /** Some run waits for a slot of its key, in whatever shard. */
  hasLimited: boolean
  /** Those of the served queues that have a limit. */
  limitedQueueIds: number[]
  fleet: FleetTurns
  pauses: PauseMark[]
  queueSettings: QueueSettings[]
  tenantLimits: TenantLimits[]
  /** Somebody waits to be told of the end of a run, in whatever shard. */
  hasOutbox: boolean
  schema: SchemaVersion
}

const listOf = (array: string): string[] => (array === '{}' ? [] : array.slice(1, -1).split(','))

export async function sendPulse(db: Queryable, question: PulseQuestion): Promise<PulseAnswer> {
  const [row] = await db.query<RowOf<Pulsed>>(PULSE, [
    question.nodeShard,
    question.nodeId,
    question.startedAt,
    question.shards,
    question.timersAfter,
    question.queueIds,
    question.roles,
    question.address,
    question.servedQueueIds,
    question.charges === null ? null : JSON.stringify(question.charges),
  ])
  const { headsKeyed, newestMigration, neededMigration, ...said } = PULSED.read(row as RowOf<Pulsed>)
  return {
    ...said,
    now: Math.floor(said.now),
    liveNodes: listOf(said.liveNodes),
    promoters: listOf(said.promoters),
    pausedQueueIds: listOf(said.pausedQueueIds).map(Number),
    deletedQueueIds: listOf(said.deletedQueueIds).map(Number),
    limitedQueueIds: listOf(said.limitedQueueIds).map(Number),
    changedCalendars: JSON.parse(said.changedCalendars),
    timersDue: listOf(said.timersDue).map(Number),
    waitingDue: listOf(said.waitingDue).map(Number),
    heads: headsByQueue(question.queueIds, said.heads, headsKeyed),
    fleet: JSON.parse(said.fleet),
    pauses: JSON.parse(said.pauses),
    queueSettings: JSON.parse(said.queueSettings),
    tenantLimits: JSON.parse(said.tenantLimits),
    schema: { newest: newestMigration, needed: neededMigration },
  }
}

/** The same that a pulse answers about queues, for those that somebody asks about now. */
export async function readHeads(db: Queryable, queueIds: readonly number[]): Promise<(number | null)[][]> {
  const [row] = await db.query<[string, string]>(HEADS, [queueIds])
  return headsByQueue(queueIds, ...(row as [string, string]))
}

function headsByQueue(queueIds: readonly number[], ...kinds: string[]): (number | null)[][] {
  const turns = kinds.map((heads) => listOf(heads).map((turn) => (turn === 'NULL' ? null : Number(turn))))
  return queueIds.map((_, i) => turns.flatMap((list) => list.slice(i * PRIORITIES, (i + 1) * PRIORITIES)))
}

export async function grantGrace(db: Queryable, until: Instant): Promise<void> {
  await db.query(GRACE, [new Date(until).toISOString()])
}

export async function leave(db: Queryable, node: { shard: number; id: string }): Promise<void> {
  await db.query(LEAVE, [node.shard, node.id])
}

export async function forgetNodes(db: Queryable, shards: readonly number[], pulsedBefore: Instant): Promise<void> {
  await db.query(FORGET, [shards, pulsedBefore])
}
