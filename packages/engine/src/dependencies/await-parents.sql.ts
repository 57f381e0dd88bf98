import { createdAtOf, shardOfJob } from '../job/ids.ts'
import { OUTCOME } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { type Statement, statement } from '../store/statement.ts'
import type { End } from './outbox.sql.ts'
import { isHeardOf, ownEnd } from './own-run.ts'

const JOBS = 'unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)'

/** A one-off stands in `specs`, a recurring job in `jobs`. */
const FIND = statement(
  'find_parents',
  `select u.job_id, coalesce(j.tenant_id, s.tenant_id), j.status from ${JOBS}
   left join lateral (select j.tenant_id, j.status from belfry.jobs j where j.shard = u.shard and j.id = u.job_id limit 1) j on true
   left join lateral (select s.tenant_id from belfry.specs s where s.shard = u.shard and s.job_id = u.job_id limit 1) s on true
   where j.tenant_id is not null or s.tenant_id is not null`,
)
/** Rows of these jobs, by key: from the jobs to the table, whatever the planner believes of either. */
const rowsOf = (table: string, columns: string, suffix: string): string =>
  `select ${columns} from ${JOBS} cross join lateral (
     select r.ctid from belfry.${table} r where r.shard = u.shard and r.job_id = u.job_id${suffix}) r`
/**
 * Holds the rows until the commit, those that are marked already as well: a parent that ends meanwhile ends after the edges are
 * there, or before, and then it is not found here. Only then they are marked, by a statement that sees what was waited for.
 */
const holdRows = (table: string, which = ''): string =>
  rowsOf(table, 'u.job_id', `${which} order by r.nominal_at for update`)
const markRows = (table: string, change: string, answer: string, which = ''): string =>
  `update belfry.${table} t set ${change} where t.ctid = any (array(${rowsOf(table, 'r.ctid', which)})) returning ${answer}`
const HEARD_OF = ` and ${isHeardOf('r')}`

const HOLD_TIMERS = statement('hold_awaited_timers', holdRows('timers'))
const MARK_TIMERS = statement(
  'mark_awaited_timers',
  markRows('timers', 'has_dependents = true, version = t.version + 1', 't.job_id'),
)
const HOLD_RUNS = statement('hold_awaited_runs', holdRows('runs', HEARD_OF))
const MARK_RUNS = statement('mark_awaited_runs', markRows('runs', 'has_dependents = true', 't.job_id', HEARD_OF))
const HOLD_LETTERS = statement('hold_awaited_letters', holdRows('dead_letters', HEARD_OF))
const MARK_LETTERS = statement(
  'mark_awaited_letters',
  markRows('dead_letters', 'has_dependents = true', 't.job_id, t.nominal_at, t.attempt', HEARD_OF),
)
const ENDS = statement(
  'read_ends_of_one_offs',
  `select u.job_id, a.nominal_at, a.number, a.outcome
   from unnest($1::smallint[], $2::uuid[], $3::float8[]) as u (shard, job_id, since) cross join lateral (
     ${ownEnd('a.nominal_at, a.number, a.outcome', { shard: 'u.shard', jobId: 'u.job_id', since: 'to_timestamp(u.since / 1000)' })}) a`,
)

export interface FoundJob {
  tenantId: number
  isRecurring: boolean
  /** A recurring job that is not canceled or used up. */
  hasFuture: boolean
}

/** Those that exist, whosever they are. */
export async function findParents(tx: Queryable, jobIds: readonly string[]): Promise<Map<string, FoundJob>> {
  const rows = await tx.query<[string, number, number | null]>(FIND, arraysOf(jobIds))
  return new Map(
    rows.map(([jobId, tenantId, status]) => [
      jobId,
      { tenantId, isRecurring: status !== null, hasFuture: status === null || status < 2 },
    ]),
  )
}

export interface Awaited {
  /** One-offs that ended before: whoever waits for them is told by the outbox, like everybody else. */
  ends: End[]
  /** One-offs that ended so long ago that nobody knows how. */
  forgotten: string[]
}

/**
 * Makes sure that whoever ends these jobs tells those that begin to wait for them now. In the order timers, runs, dead letters,
 * history, as a run moves; a dead letter that is gone by then was opened again, so runs are looked at once more.
 */
export async function awaitParents(
  tx: Queryable,
  { oneOffs, recurring }: { oneOffs: readonly string[]; recurring: readonly string[] },
): Promise<Awaited> {
  const all = [...oneOffs, ...recurring].sort(byPlace)
  if (all.length === 0) return { ends: [], forgotten: [] }
  const marked = new Set((await held<[string]>(tx, HOLD_TIMERS, MARK_TIMERS, all)).flat())
  await markRuns(tx, all, marked)
  let left = oneOffs.filter((jobId) => !marked.has(jobId)).sort(byPlace)
  if (left.length === 0) return { ends: [], forgotten: [] }
  const letters = await held<[string, Instant, number]>(tx, HOLD_LETTERS, MARK_LETTERS, left)
  const ends = letters.map(([jobId, nominalAt, number]): End => ({ jobId, nominalAt, number, outcome: OUTCOME.failed }))
  const dead = new Set(ends.map(({ jobId }) => jobId))
  left = left.filter((jobId) => !dead.has(jobId))
  await markRuns(tx, left, marked)
  left = left.filter((jobId) => !marked.has(jobId))
  ends.push(...(await readEnds(tx, left)))
  const known = new Set(ends.map(({ jobId }) => jobId))
  return { ends, forgotten: left.filter((jobId) => !known.has(jobId)) }
}

/** Most jobs have no row in a place: then nothing is left to mark there. */
async function held<Row extends readonly unknown[]>(
  tx: Queryable,
  hold: Statement,
  mark: Statement,
  jobIds: readonly string[],
): Promise<Row[]> {
  const found = (await tx.query<[string]>(hold, arraysOf(jobIds))).flat()
  return found.length === 0 ? [] : tx.query<Row>(mark, arraysOf([...new Set(found)]))
}

async function markRuns(tx: Queryable, jobIds: readonly string[], marked: Set<string>): Promise<void> {
  if (jobIds.length === 0) return
  for (const [jobId] of await held<[string]>(tx, HOLD_RUNS, MARK_RUNS, jobIds)) marked.add(jobId)
}

async function readEnds(tx: Queryable, jobIds: readonly string[]): Promise<End[]> {
  if (jobIds.length === 0) return []
  const since = jobIds.map((jobId) => createdAtOf(jobId) - DAY_MS)
  const rows = await tx.query<[string, Instant, number, number]>(ENDS, [...arraysOf(jobIds), since])
  return rows.map(([jobId, nominalAt, number, outcome]) => ({ jobId, nominalAt, number, outcome }))
}

const arraysOf = (jobIds: readonly string[]): ArrayValues[] => [jobIds.map(shardOfJob), jobIds]

const byPlace = (a: string, b: string): number => shardOfJob(a) - shardOfJob(b) || (a < b ? -1 : 1)
