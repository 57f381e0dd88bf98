import type { QueueSettings } from './queue-settings.ts'

/** A tenant's quotas `waitingRuns` and `waitingSeconds`, as limits of what waits. */
export type TenantLimits = Omit<QueueSettings, 'jitterMs'>

export const NO_TENANT_LIMITS: TenantLimits = { id: 0, maxDepth: null, maxAgeMs: null }
