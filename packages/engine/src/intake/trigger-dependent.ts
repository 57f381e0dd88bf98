import { hadRun } from '../dependencies/chain.sql.ts'
import { releaseByHand } from '../dependencies/children.sql.ts'
import { refusal } from '../errors.ts'
import type { Definition } from '../job/definition.ts'
import { runIdOf } from '../job/ids.ts'
import type { Turns } from '../ready/turn.ts'
import type { MadeReady } from '../ready/woken.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import type { JobRow } from './job-row.sql.ts'
import type { UnderstoodTrigger } from './understand-trigger.ts'

/** A one-off that waits for others is triggered by waiting no longer: it has one run, and that is the one. Null: it does not wait. */
export async function triggerDependent(
  tx: Queryable,
  job: JobRow,
  { payloadJson, overlap }: UnderstoodTrigger,
  at: { turns: Turns; now: Instant },
): Promise<(MadeReady & { runId: string }) | null> {
  if (!job.oneOff || payloadJson !== null || overlap !== null) return null
  const released = await releaseByHand(tx, job, at)
  return released && { ...released, runId: runIdOf(job.jobId, released.nominalAt) }
}

/** Runs of a job that follows others have the times of those, which are mostly whole seconds: a trigger takes none of them. */
export async function timeBesideChain(tx: Queryable, { jobId }: JobRow, from: Instant): Promise<Instant> {
  let at = from
  while (at % 1_000 === 0 || (await hadRun(tx, jobId, at))) at++
  return at
}

/** It follows recurring jobs, and has no schedule. */
export const isChain = ({ oneOff, definitionJson }: JobRow): boolean =>
  !oneOff && (JSON.parse(definitionJson) as Definition).after !== undefined

/** Times of its parents that fell into the pause have been decided, one by one: there is nothing to make up for. */
export function mustMissNothing(job: JobRow): void {
  if (!isChain(job)) return
  const message = 'cannot be catch_up for a job that follows others: what those ran during the pause has been skipped'
  throw refusal('invalid_argument', 'missed', message)
}
