import type { KnownSettings } from './known-settings.ts'

/** What somebody has set for a queue, where it says when too much waits, or how recurring jobs are spread. */
export interface QueueSettings {
  id: number
  maxDepth: number | null
  maxAgeMs: number | null
  jitterMs: number | null
}

export type KnownQueueSettings = KnownSettings<QueueSettings>

export const NO_QUEUE_SETTINGS: QueueSettings = { id: 0, maxDepth: null, maxAgeMs: null, jitterMs: null }
