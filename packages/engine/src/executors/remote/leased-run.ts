import { afterOf, type ParentRun, readParentRuns } from '../../dependencies/parent-runs.sql.ts'
import type { Definition } from '../../job/definition.ts'
import { runIdOf } from '../../job/ids.ts'
import { readCheckpoints } from '../../leases/checkpoints.sql.ts'
import type { Queryable } from '../../store/database.ts'
import type { TraceParents } from '../http/trace-parent.ts'
import type { DefinedLease } from '../startable.ts'
import type { LeaseTokens } from './lease-token.ts'

/** A run as a worker gets it. */
export interface LeasedRun {
  runId: string
  jobId: string
  nominalAt: Date
  attempt: number
  failures: number
  token: string
  leaseUntil: Date
  /** When its time is up, if it begins at once. */
  deadline: Date
  /** How long the work may take. */
  timeoutMs: number
  payload?: unknown
  payloadRef?: string
  labels?: Readonly<Record<string, string>>
  /** What an earlier attempt left. */
  checkpoint?: unknown
  /** Only if it may be performed at most once. */
  atMostOnce?: true
  /** Its worker must say that the work begins, before it does. */
  begin?: true
  traceparent: string
  /** Of a job that waits for others: how those ended, and their results. */
  parents?: ParentRun[]
}

export async function leasedRuns(
  deps: { db: Queryable; tokens: LeaseTokens; traces: TraceParents },
  leases: readonly DefinedLease[],
  { leaseMs, toBegin }: { leaseMs: number; toBegin: ReadonlySet<DefinedLease> },
): Promise<LeasedRun[]> {
  const again = leases.filter((lease) => lease.attempt > 1)
  const found = again.length === 0 ? [] : await readCheckpoints(deps.db, again)
  const checkpoints = new Map(found.map(({ jobId, nominalAt, json }) => [runIdOf(jobId, nominalAt), json]))
  const awaiting = leases.flatMap((lease) => {
    const after = afterOf(lease.definition)
    return after === null ? [] : [{ lease, after, nominalAt: lease.nominalAt, oneOff: lease.oneOff }]
  })
  const parentRuns = awaiting.length === 0 ? [] : await readParentRuns(deps.db, awaiting)
  const parents = new Map(awaiting.map(({ lease }, i) => [lease, parentRuns[i] ?? []]))
  return leases.map((lease) => {
    const runId = runIdOf(lease.jobId, lease.nominalAt)
    const checkpoint = checkpoints.get(runId)
    const { payload, payloadRef, labels } = JSON.parse(lease.definition) as Definition
    return {
      runId,
      jobId: lease.jobId,
      nominalAt: new Date(lease.nominalAt),
      attempt: lease.attempt,
      failures: lease.failures,
      token: deps.tokens.sign(lease, leaseMs),
      leaseUntil: new Date(lease.leaseUntil),
      deadline: new Date(lease.deadline),
      timeoutMs: lease.timeoutMs,
      ...(payload === undefined ? {} : { payload }),
      ...(payloadRef === undefined ? {} : { payloadRef }),
      ...(labels === undefined ? {} : { labels }),
      ...(checkpoint === undefined ? {} : { checkpoint: JSON.parse(checkpoint) }),
      ...(lease.atMostOnce ? { atMostOnce: true } : {}),
      ...(toBegin.has(lease) ? { begin: true } : {}),
      traceparent: deps.traces.next(),
      ...(parents.has(lease) ? { parents: parents.get(lease) as ParentRun[] } : {}),
    }
  })
}
