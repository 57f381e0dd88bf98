import type { After, Definition } from '../job/definition.ts'
import { createdAtOf, runIdOf, shardOfJob } from '../job/ids.ts'
import { nameOf, OUTCOME, type Outcome } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { isOwnRun } from './own-run.ts'

/** Results of the parents of one run, together; those that come after it are left out. */
const MAX_RESULT_CHARACTERS = 262_144

/** How each parent ended; of a recurring one, its run of the same nominal time. */
const READ = statement(
  'read_parent_runs',
  `select u.n::int, a.nominal_at, a.outcome,
     case when sum(coalesce(length(a.result::text), 0)) over (partition by u.run order by u.n) <= ${MAX_RESULT_CHARACTERS} then a.result::text end,
     a.result is not null
   from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::float8[], $5::int[]) with ordinality as u (shard, job_id, nominal_at, since, run, n)
   cross join lateral (
     select a.nominal_at, a.outcome, a.result from belfry.attempts a
     where a.shard = u.shard and a.job_id = u.job_id and a.finished_at >= to_timestamp(u.since / 1000) and a.final
       and case when u.nominal_at is null then ${isOwnRun('a')} else a.nominal_at = to_timestamp(u.nominal_at / 1000) end
     order by a.finished_at desc limit 1) a`,
)

/** A job that a run waited for. */
export interface ParentRun {
  jobId: string
  /** Its local name in the call that made both. */
  ref?: string
  /** Null: it has no run of this time, or has not ended. */
  runId: string | null
  status: Outcome | null
  result: unknown
  /** The results of all parents together were too much: ask for this one by its run. */
  resultLeftOut?: true
}

export interface RunWithParents {
  nominalAt: Instant
  oneOff: boolean
  after: After
}

/** Most definitions have none, and are not parsed to find that out. */
export function afterOf(definitionJson: string | null | undefined): After | null {
  if (!definitionJson?.includes('"after":')) return null
  return (JSON.parse(definitionJson) as Definition).after ?? null
}

/** In the order of the runs, and for each in the order in which its parents are named. */
export async function readParentRuns(db: Queryable, runs: readonly RunWithParents[]): Promise<ParentRun[][]> {
  const asked = runs.flatMap(({ after, nominalAt, oneOff }, run) =>
    after.jobs.map((jobId) => ({ jobId, run, nominalAt: oneOff ? null : nominalAt, ref: after.refs?.[jobId] })),
  )
  const answer: ParentRun[][] = runs.map(() => [])
  if (asked.length === 0) return answer
  const found = new Map<number, Row>()
  for (const row of await db.query<Row>(READ, [
    asked.map(({ jobId }) => shardOfJob(jobId)),
    asked.map(({ jobId }) => jobId),
    asked.map(({ nominalAt }) => nominalAt),
    asked.map(({ jobId, nominalAt }) => Math.max(createdAtOf(jobId), nominalAt ?? 0) - DAY_MS),
    asked.map(({ run }) => run),
  ]))
    found.set(row[0], row)
  asked.forEach(({ jobId, run, ref }, i) => {
    answer[run]?.push(parentOf(jobId, ref, found.get(i + 1)))
  })
  return answer
}

type Row = [n: number, nominalAt: Instant, outcome: number, result: string | null, hasResult: boolean]

function parentOf(jobId: string, ref: string | undefined, row: Row | undefined): ParentRun {
  const named = ref === undefined ? { jobId } : { jobId, ref }
  if (row === undefined) return { ...named, runId: null, status: null, result: null }
  const [, nominalAt, outcome, result, hasResult] = row
  return {
    ...named,
    runId: runIdOf(jobId, nominalAt),
    status: nameOf(OUTCOME, outcome) ?? null,
    result: result === null ? null : JSON.parse(result),
    ...(hasResult && result === null ? { resultLeftOut: true } : {}),
  }
}
