import { BelfryError } from '../errors.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { isStoredPayload } from '../vault/payload-ref.ts'
import { announceUses, endUses, type PayloadUse } from '../vault/payload-uses.sql.ts'
import { KEY_KIND, keyText, readKeys } from './keys.sql.ts'
import type { Prepared } from './put-prepared.ts'

/** The tenant has no payload of the name that a job gives. */
export class PayloadMissing extends BelfryError {
  /** The new job that names it; null: a job that is there already. */
  readonly item: Prepared | null

  constructor(payloadRef: string | undefined, item: Prepared | null) {
    const message = `there is no payload ${payloadRef}`
    super('invalid_job', `payloadRef: ${message}`, { complaints: [{ path: 'payloadRef', message }] })
    this.item = item
  }
}

export const missingOf = (item: Prepared): PayloadMissing =>
  new PayloadMissing(item.understood.definition.payloadRef, item)

/** Whether the job names a payload that is stored here. */
export function namesPayload({ understood: { definition } }: Prepared): boolean {
  return definition.payloadRef !== undefined && isStoredPayload(definition.payloadRef)
}

const useOf = ({ job, understood }: Prepared, now: Instant): PayloadUse => ({
  tenantId: job.tenantId,
  payloadRef: understood.definition.payloadRef as string,
  jobId: job.jobId,
  at: Math.max(now, job.dueAt),
})

/**
 * Says when the jobs of a call will need their payloads, before anything else of them is written; answers those whose payload is
 * missing. Costs nothing where no job names one. It throws at once unless such a job may be the repetition of an earlier one: that
 * is answered by its first job, whatever has become of its payload.
 */
export async function announcePayloads(
  tx: Queryable,
  prepared: readonly Prepared[],
  now: Instant,
): Promise<ReadonlySet<Prepared>> {
  const naming = prepared.filter(namesPayload)
  if (naming.length === 0) return NONE
  const uses = new Map(naming.map((item) => [item.job.jobId, item]))
  const announced = await announceUses(
    tx,
    naming.map((item) => useOf(item, now)),
  )
  const missing = announced.map(({ jobId }) => uses.get(jobId) as Prepared)
  if (missing.length > 0) await mayBeRepeated(tx, missing)
  return new Set(missing)
}

const NONE: ReadonlySet<Prepared> = new Set()

async function mayBeRepeated(tx: Queryable, missing: readonly Prepared[]): Promise<void> {
  const keys = missing.flatMap((item) => item.keys.filter(({ kind }) => kind === KEY_KIND.idempotency))
  const held = keys.length === 0 ? new Map() : await readKeys(tx, keys)
  const alone = missing.find((item) => !item.keys.some((key) => held.has(keyText(key))))
  if (alone) throw missingOf(alone)
}

/** Of what was announced: these are not put, because they are there already. */
export async function withdrawPayloads(tx: Queryable, items: readonly Prepared[]): Promise<void> {
  const naming = items.filter(namesPayload)
  if (naming.length === 0) return
  await endUses(
    tx,
    naming.map((item) => useOf(item, 0)),
  )
}
