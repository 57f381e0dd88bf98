import { partsOf } from './known-settings.ts'
import type { QueueSettings } from './queue-settings.ts'

/** A tenant's quotas `waitingRuns` and `waitingSeconds`, as limits of what waits. */
export type TenantLimits = Omit<QueueSettings, 'jitterMs'>

export const NO_TENANT_LIMITS: TenantLimits = { id: 0, maxDepth: null, maxAgeMs: null }

/** Reads what the pulse writes: `id/runs/seconds`. */
export function tenantLimitsOf(text: string): TenantLimits {
  const [id, maxDepth = null, seconds = null] = partsOf(text)
  return { id: id ?? 0, maxDepth, maxAgeMs: seconds === null ? null : seconds * 1_000 }
}
