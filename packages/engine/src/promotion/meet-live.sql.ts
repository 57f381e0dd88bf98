import { CAUSE, nameOf, OVERLAP, RUN_STATE } from '../job/states.ts'
import { unpackRunsOf } from '../leases/receipts.sql.ts'
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
     count(*) filter (where r.cause <> ${CAUSE.backfill} and r.state = ${RUN_STATE.blocked})::int,
     exists (select from belfry.packed_runs p where p.among @> array[$2::uuid] and p.job_id = $2)
   from belfry.runs r where r.shard = $1 and r.job_id = $2`,
)

async function lookAtLive(tx: Queryable, job: { shard: number; jobId: string }): Promise<Alive & { packed: boolean }> {
  const [row] = await tx.query<[number, number, number, boolean]>(LOOK, [job.shard, job.jobId])
  const [any, others, waiting, packed] = row as [number, number, number, boolean]
  return { any: any > 0 || packed, others: others > 0 || packed, waiting, packed }
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
 *
 * Where something is to wait, no receipt lists the job any more: whoever wakes it finds what it waits for among the rows.
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
  const newest = new Date(times.at(-1) as Instant).toISOString()
  const because = `${newest} came meanwhile, and overlap is ${nameOf(OVERLAP, policy)}`
  if (supersedes) await supersedeBlocked(tx, job, { now: at.now, error: `superseded: ${because}` })
  if (!cancels) {
    if (blocked.length > 0 && alive.packed) await unpackRunsOf(tx, job)
    return { ready, blocked, skips, asked: [] }
  }
  const { asked } = await stopLive(
    tx,
    { ...job, nominalAt: null, exceptCauses: [CAUSE.backfill] },
    { now: at.now, graceUntil: at.now + at.graceMs, leased: 'ask', error: `canceled: ${because}` },
  )
  return (await lookAtLive(tx, job)).any
    ? { ready, blocked, skips, asked }
    : { ready: blocked, blocked: [], skips, asked }
}
