import { RUN_STATE } from '../job/states.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { type Statement, statement } from '../store/statement.ts'
import { type Asked, Gauge, type GaugeDeps, type Reading, type ReadingRow, type Refusal, readingOf } from './gauge.ts'

/** Of the runs of a tenant, whatever their state; of `default`, which has no index of its own, of those of all tenants. */
const MAX_LOOKED_AT = 1_000_000
/** Runs that wait, where only their age is limited. */
const MAX_AGED = 10_000

/** How many wait to be started, in whatever queue and no further than the bound, and since when the oldest of these has been due. */
const measured = (runs: string): string =>
  `(select count(*)::int as depth, min(w.due_at) as oldest from (
       select r.due_at from (${runs} limit ${MAX_LOOKED_AT}) r
       where r.tenant_id = u.tenant_id and r.state in (${RUN_STATE.ready}, ${RUN_STATE.limited}) limit u.bound) w) m`

const MEASURE = statement(
  'measure_tenants',
  `select u.tenant_id, m.depth, m.oldest from unnest($1::int[], $2::bigint[]) as u (tenant_id, bound) cross join lateral
     ${measured('select r.tenant_id, r.state, r.due_at from belfry.runs r where r.tenant_id = u.tenant_id and r.tenant_id <> 1 order by r.job_id, r.nominal_at')}`,
)
const MEASURE_DEFAULT = statement(
  'measure_tenant_default',
  `select u.tenant_id, m.depth, m.oldest from unnest($1::int[], $2::bigint[]) as u (tenant_id, bound) cross join lateral
     ${measured('select r.tenant_id, r.state, r.due_at from belfry.runs r')}`,
)

const REFUSAL: Refusal = {
  code: 'tenant_full',
  neverFits: ({ name, jobs }, maxDepth) =>
    `${jobs} jobs of one call never fit into the quota of the tenant "${name}", whose waitingRuns is ${maxDepth}: send at most ${maxDepth} of them at a time`,
  full: (name, waiting, maxDepth) =>
    `the tenant "${name}" is full: ${waiting} in all its queues, and its quota waitingRuns is ${maxDepth}`,
  late: (name, ageMs, maxAgeMs) =>
    `the tenant "${name}" is late: its oldest run has waited for ${ageMs / 1_000} s, and its quota waitingSeconds is ${maxAgeMs / 1_000}`,
}

/** Keeps tenants within their quotas `waitingRuns` and `waitingSeconds`. */
export function tenantGauge(deps: { db: Queryable; clock: Clock; limits: GaugeDeps['limits'] }): Gauge {
  return new Gauge({ ...deps, refusal: REFUSAL, measure: (tenants) => measure(deps.db, tenants) })
}

async function measure(db: Queryable, tenants: readonly Asked[]): Promise<Reading[]> {
  const ofDefault = tenants.filter(({ id }) => id === 1)
  const others = tenants.filter(({ id }) => id !== 1)
  return [...(await read(db, MEASURE, others)), ...(await read(db, MEASURE_DEFAULT, ofDefault))]
}

async function read(db: Queryable, sent: Statement, tenants: readonly Asked[]): Promise<Reading[]> {
  if (tenants.length === 0) return []
  const ids = tenants.map(({ id }) => id)
  const bounds = tenants.map(({ limits }) => (limits.maxDepth === null ? MAX_AGED : limits.maxDepth + 1))
  return (await db.query<ReadingRow>(sent, [ids, bounds])).map(readingOf)
}
