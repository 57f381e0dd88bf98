import type { Definition } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { isStoredPayload } from '../vault/payload-ref.ts'
import { announceUses, endUses } from '../vault/payload-uses.sql.ts'
import { PayloadMissing } from './announce-payloads.ts'
import type { JobRow } from './job-row.sql.ts'

/**
 * A job was changed: it needs the payload that it names now, at its next time, and no longer the one that it named before. Runs that
 * are alive are performed with the new definition too. Throws if a payload that is new to the job does not exist.
 */
export async function movePayloadUse(
  tx: Queryable,
  { jobId, tenantId, definitionJson }: JobRow,
  { payloadRef }: Definition,
  at: Instant,
): Promise<void> {
  const before = (JSON.parse(definitionJson) as Definition).payloadRef
  if (before !== undefined && before !== payloadRef) await endUses(tx, [{ payloadRef: before, jobId }])
  if (payloadRef === undefined || !isStoredPayload(payloadRef)) return
  const missing = await announceUses(tx, [{ tenantId, payloadRef, jobId, at }])
  if (missing.length === 0 || payloadRef === before) return
  throw new PayloadMissing(payloadRef, null)
}
