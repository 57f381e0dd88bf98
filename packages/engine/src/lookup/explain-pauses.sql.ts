import { shardOfJob } from '../job/ids.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { PAUSE_KIND } from '../shards/paused.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Judgement } from './explain-verdict.ts'
import type { ExplainedPause, Reason } from './explanation.ts'

/** The pauses that concern a job: of its tenant, of its key, or of what it calls. The tenant's first. */
const PAUSES = statement(
  'explain_pauses',
  `select p.kind, p.name, p.paused_at, p.paused_by, p.reason from belfry.pauses p
   where p.tenant_id = $1 and p.ended_at is null and (p.kind = ${PAUSE_KIND.tenant} or (p.kind = ${PAUSE_KIND.origin} and p.name = $4)
     or (p.kind = ${PAUSE_KIND.key} and p.name = (
       select coalesce(d.definition -> 'concurrency' ->> 'key', d.definition -> 'rateLimit' ->> 'key') from (
         select j.definition from belfry.jobs j where j.shard = $2 and j.id = $3
         union all select s.definition from belfry.specs s where s.shard = $2 and s.job_id = $3) d limit 1)))
   order by p.kind`,
)

const NAMES = ['tenant', 'key', 'origin'] as const
const REASONS = { tenant: 'tenant_paused', key: 'key_paused', origin: 'origin_paused' } as const

export async function readPauses(
  db: Queryable,
  tenantId: number,
  jobId: string,
  url: string | null,
): Promise<ExplainedPause[]> {
  const origin = url !== null && URL.canParse(url) ? new URL(url).origin : null
  type Row = [kind: number, name: string, at: Instant, by: string, reason: string | null]
  const rows = await db.query<Row>(PAUSES, [tenantId, shardOfJob(jobId), jobId, origin])
  return rows.map(([kind, name, at, actor, reason]) => ({
    ...{ kind: NAMES[kind] ?? 'tenant', name: name === '' ? null : name },
    ...{ action: 'pause', actor, at: new Date(at), reason },
  }))
}

/** The pause that keeps a run from being started; one that is between two attempts waits for its time first. */
export function pauseOf({ live, reason }: Judgement, pauses: readonly ExplainedPause[]): ExplainedPause | null {
  if (live === null || live.state === RUN_STATE.leased) return null
  const isNext = reason === 'ready' || live.state === RUN_STATE.limited
  const holds = { tenant: reason === 'released', key: false, origin: reason === 'circuit_open' }
  return pauses.find(({ kind }) => isNext || holds[kind]) ?? null
}

export const pauseReasonOf = ({ kind }: ExplainedPause): Reason => REASONS[kind]
