import { type Complaints, readClockMs, readInteger, readRecord } from '../input/read-fields.ts'
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
  const depth = nullOr(maxDepth, (value) => readInteger(complaints, 'maxDepth', value, 1, MAX_DEPTH))
  if (depth !== undefined) settings.maxDepth = depth
  const age = nullOr(maxAge, (value) => readClockMs(complaints, 'maxAge', value, 1_000, MAX_AGE_MS))
  if (age !== undefined) settings.maxAgeMs = age
  const record = defaults === undefined ? undefined : readRecord(complaints, 'defaults', defaults, ['jitter'])
  const jitter = nullOr(record?.jitter, (value) => readClockMs(complaints, 'defaults.jitter', value, 1, MAX_JITTER_MS))
  if (jitter !== undefined) settings.jitterMs = jitter
  return settings
}

const nullOr = (value: unknown, read: (value: unknown) => number | undefined): number | null | undefined =>
  value === undefined || value === null ? value : read(value)
