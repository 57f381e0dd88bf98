import type { Definition } from './definition.ts'
import { hash64 } from './ids.ts'
import { DELIVERY, KEYED } from './states.ts'

/** The name of the limit that the job's runs share with those of other jobs; null: they share none. */
export const limitNameOf = ({ concurrency, rateLimit }: Definition): string | null =>
  concurrency?.key ?? rateLimit?.key ?? null

/** The limit that the job's runs are counted by, as it stands in its rows: that of a name, or of the job alone. */
export function limitKeyOf(definition: Definition, tenantId: number, jobId: string): string | null {
  if (definition.concurrency === undefined && definition.rateLimit === undefined) return null
  const name = limitNameOf(definition)
  return name === null ? hash64(`job/${jobId}`) : hash64(`key/${tenantId}/${name}`)
}

const LOW_32_BITS = 0xffff_ffffn

/** Runs of one queue take turns by this number; null: they are all the same. */
export const fairnessKeyOf = ({ fairnessKey }: Definition): number | null =>
  fairnessKey === undefined ? null : Number(BigInt.asIntN(32, BigInt(hash64(fairnessKey)) & LOW_32_BITS))

/** How its runs stand among others: whether they may be repeated, and whether they have a limit of their own. */
export function deliveryOf(definition: Definition): number {
  const hasLimit = definition.concurrency !== undefined || definition.rateLimit !== undefined
  return DELIVERY[definition.delivery ?? 'at_least_once'] + (hasLimit ? KEYED : 0)
}
