import type { Instant } from '../../runtime/clock.ts'
import type { Queryable } from '../../store/database.ts'
import { statement } from '../../store/statement.ts'

/** An open circuit, as the table has it and all nodes see it. A closed one has no row. */
export interface OpenCircuit {
  openedAt: Instant
  /** From then on one run is let through; while it is under way, until when others leave it to that one. */
  probeAt: Instant
  openMs: number
  failures: number
  probing: boolean
  reason: string
}

export interface CircuitRow extends OpenCircuit {
  tenantId: number
  origin: string
}

const COLUMNS = 'c.tenant_id, c.origin, c.opened_at, c.probe_at, c.open_ms, c.failures, c.probing, c.reason'

/** Of two nodes that open it at once the first one's word counts. */
const OPEN = statement(
  'open_circuit',
  `insert into belfry.circuits (tenant_id, origin, opened_at, probe_at, open_ms, failures, probing, reason)
   values ($1, $2, to_timestamp($3::float8 / 1000), to_timestamp($4::float8 / 1000), $5, $6, false, $7) on conflict do nothing`,
)
/** The compare-and-set that lets one run through, whatever the number of nodes. */
const PROBE = statement(
  'probe_circuit',
  `update belfry.circuits c set probe_at = to_timestamp($4::float8 / 1000), probing = true
   where c.tenant_id = $1 and c.origin = $2 and c.probe_at <= to_timestamp($3::float8 / 1000) returning c.origin`,
)
const REOPEN = statement(
  'reopen_circuit',
  `update belfry.circuits c set probe_at = to_timestamp($4::float8 / 1000), open_ms = $5, failures = c.failures + $6, probing = false,
     reason = coalesce($7, c.reason)
   where c.tenant_id = $1 and c.origin = $2 and c.probe_at = to_timestamp($3::float8 / 1000)`,
)
const CLOSE = statement(
  'close_circuit',
  'delete from belfry.circuits c where c.tenant_id = $1 and c.origin = $2 returning c.origin',
)
const ALL = statement('read_circuits', `select ${COLUMNS} from belfry.circuits c limit 10000`)
const ONE = statement(
  'read_circuit',
  `select ${COLUMNS} from belfry.circuits c where c.tenant_id = $1 and c.origin = $2`,
)
const OF_TENANT = statement(
  'list_circuits',
  `select ${COLUMNS} from belfry.circuits c where c.tenant_id = $1 order by c.origin limit 1000`,
)
const FORGET = statement(
  'forget_circuits',
  'delete from belfry.circuits c where c.probe_at < to_timestamp($1::float8 / 1000)',
)

type Row = [number, string, Instant, Instant, number, number, boolean, string]

const circuitOf = ([tenantId, origin, openedAt, probeAt, openMs, failures, probing, reason]: Row): CircuitRow => ({
  tenantId,
  origin,
  openedAt,
  probeAt,
  openMs,
  failures,
  probing,
  reason,
})

interface Place {
  tenantId: number
  origin: string
}

export async function openCircuit(db: Queryable, { tenantId, origin }: Place, open: OpenCircuit): Promise<void> {
  const { openedAt, probeAt, openMs, failures, reason } = open
  await db.execute(OPEN, [tenantId, origin, openedAt, probeAt, openMs, failures, reason])
}

/** True: the caller's run is the probe. Nobody else gets it before `until`. */
export async function probeCircuit(
  db: Queryable,
  { tenantId, origin }: Place,
  { now, until }: { now: Instant; until: Instant },
): Promise<boolean> {
  return (await db.query(PROBE, [tenantId, origin, now, until])).length === 1
}

/** Ends a probe that did not close it; only if that probe's time is not over and another's has begun. */
export async function reopenCircuit(
  db: Queryable,
  { tenantId, origin }: Place,
  probe: { until: Instant },
  again: { probeAt: Instant; openMs: number; failures: number; reason: string | null },
): Promise<void> {
  await db.execute(REOPEN, [tenantId, origin, probe.until, again.probeAt, again.openMs, again.failures, again.reason])
}

export async function closeCircuit(db: Queryable, { tenantId, origin }: Place): Promise<boolean> {
  return (await db.query(CLOSE, [tenantId, origin])).length === 1
}

export async function readCircuits(db: Queryable): Promise<CircuitRow[]> {
  return (await db.query<Row>(ALL, [])).map(circuitOf)
}

export async function readCircuit(db: Queryable, { tenantId, origin }: Place): Promise<CircuitRow | null> {
  const [row] = await db.query<Row>(ONE, [tenantId, origin])
  return row ? circuitOf(row) : null
}

export async function circuitsOfTenant(db: Queryable, tenantId: number): Promise<CircuitRow[]> {
  return (await db.query<Row>(OF_TENANT, [tenantId])).map(circuitOf)
}

/** Circuits that nobody has wanted to call for long. */
export async function forgetCircuits(db: Queryable, probeBefore: Instant): Promise<number> {
  return db.execute(FORGET, [probeBefore])
}
