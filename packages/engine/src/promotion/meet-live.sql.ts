import { CAUSE, nameOf, OVERLAP, RUN_STATE } from '../job/states.ts'
import { supersedeBlocked } from '../ready/end-unrun.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { SkipRange } from './decide.ts'
import { type Alive, fateOf } from './overlap.ts'
import { stopLive } from './stop-live.ts'

const LOOK = statement(
  'look_at_live_runs',
  `select count(*)::int, count(*) filter (where r.cause <> ${CAUSE.backfill})::int,
     count(*) filter (where r.cause <> ${CAUSE.backfill} and r.state = ${RUN_STATE.blocked})::int
   from belfry.runs r where r.shard = $1 and r.job_id = $2`,
)

async function lookAtLive(tx: Queryable, job: { shard: number; jobId: string }): Promise<Alive> {
  const [row] = await tx.query<[number, number, number]>(LOOK, [job.shard, job.jobId])
  const [any, others, waiting] = row as [number, number, number]
  return { any: any > 0, others: others > 0, waiting }
}

export interface Met {
  ready: Instant[]
  blocked: Instant[]
  skips: SkipRange[]
  /** Nominal times of runs whose holders were asked to stop. */
  asked: Instant[]
}

/**
 * What becomes of nominal times of a job under an overlap policy, in a transaction that holds the job's timer and raises its
 * version. Runs that stand in the way are ended here where the policy says so; what shall be born is for the caller.
 */
export async function meetLive(
  tx: Queryable,
  job: { shard: number; jobId: string },
  policy: number,
  times: readonly Instant[],
  at: { now: Instant; graceMs: number },
): Promise<Met> {
  if (policy === OVERLAP.allow || times.length === 0) return { ready: [...times], blocked: [], skips: [], asked: [] }
  const alive = await lookAtLive(tx, job)
  const { ready, blocked, skips, supersedes, cancels } = fateOf(policy, times, alive)
  const nominalAt = times.at(-1) as Instant
  const because = `${new Date(nominalAt).toISOString()} came meanwhile, and overlap is ${nameOf(OVERLAP, policy)}`
  const successor = { nominalAt, error: `${supersedes ? 'superseded' : 'canceled'}: ${because}` }
  if (supersedes) await supersedeBlocked(tx, job, { now: at.now, successor })
  if (!cancels) return { ready, blocked, skips, asked: [] }
  const { asked } = await stopLive(
    tx,
    { ...job, nominalAt: null, exceptCauses: [CAUSE.backfill] },
    { now: at.now, graceMs: at.graceMs, leased: 'ask', successor },
  )
  return (await lookAtLive(tx, job)).any
    ? { ready, blocked, skips, asked }
    : { ready: blocked, blocked: [], skips, asked }
}
