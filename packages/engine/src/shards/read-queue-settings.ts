import { type Complaints, readClockMs, readInteger, readRecord, setGiven } from '../input/read-fields.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { QueueSettings } from './queue-settings.ts'

/** What is left out stays as it is; null takes it away. */
export interface QueueSettingsInput {
  /** How many runs may wait to be started. */
  maxDepth?: number | null
  /** How long the next of them may have waited. */
  maxAge?: string | null
  defaults?: { jitter?: string | null }
}

const MAX_DEPTH = 1_000_000
const MAX_AGE_MS = 7 * DAY_MS
const MAX_JITTER_MS = 60_000

/** What changes. */
export function readQueueSettings(
  complaints: Complaints,
  { maxDepth, maxAge, defaults }: QueueSettingsInput,
): Partial<Omit<QueueSettings, 'id'>> {
  const settings: Partial<Omit<QueueSettings, 'id'>> = {}
  const clock = (path: string, min: number, max: number) => (value: unknown) =>
    value === null ? null : readClockMs(complaints, path, value, min, max)
  setGiven(settings, 'maxDepth', maxDepth, (value) =>
    value === null ? null : readInteger(complaints, 'maxDepth', value, 1, MAX_DEPTH),
  )
  setGiven(settings, 'maxAgeMs', maxAge, clock('maxAge', 1_000, MAX_AGE_MS))
  const record = defaults === undefined ? undefined : readRecord(complaints, 'defaults', defaults, ['jitter'])
  setGiven(settings, 'jitterMs', record?.jitter, clock('defaults.jitter', 1, MAX_JITTER_MS))
  return settings
}
