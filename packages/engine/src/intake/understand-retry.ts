import {
  type Complaints,
  readChoice,
  readClockMs,
  readInteger,
  readNumber,
  readRecord,
  setGiven,
} from '../input/read-fields.ts'
import type { Backoff, RetryPolicy } from '../job/definition.ts'
import { DEFAULT_BACKOFF, DEFAULT_MAX_ATTEMPTS } from '../job/retry.ts'
import { DAY_MS } from '../schedule/duration.ts'
import { shown } from '../schedule/not-understood.ts'

const TYPES = ['exponential', 'linear', 'fixed', 'list'] as const
const MAX_ATTEMPTS = 1_000
const MAX_DELAY_MS = 30 * DAY_MS
const MAX_AGE_MS = 366 * DAY_MS
const MAX_DELAYS = 100
const DEFAULT_INITIAL_MS = 5_000
const DEFAULT_FACTOR = 2
const DEFAULT_MAX_MS = 3_600_000

/** What a type of backoff has a use for, beside `type` and `jitter`. */
const FIELDS_OF = {
  exponential: ['initial', 'factor', 'max'],
  linear: ['initial', 'max'],
  fixed: ['initial'],
  list: ['delays'],
} as const

/** The policy without what is the default anyway; `undefined` if nothing is left. */
export function understandRetry(complaints: Complaints, value: unknown): RetryPolicy | undefined {
  if (typeof value === 'number') {
    return complaints.add('retry', `must be an object, not ${shown(value)}`, `{ maxAttempts: ${value} }`)
  }
  const record = readRecord(complaints, 'retry', value, ['maxAttempts', 'backoff', 'maxAge'])
  if (record === undefined) return undefined
  const { maxAttempts, backoff, maxAge } = record
  const policy: RetryPolicy = {}
  const attempts = (value: unknown) => readInteger(complaints, 'retry.maxAttempts', value, 1, MAX_ATTEMPTS)
  setGiven(policy, 'maxAttempts', maxAttempts, attempts, DEFAULT_MAX_ATTEMPTS)
  setGiven(policy, 'backoff', backoff, (value) => understandBackoff(complaints, value))
  if (policy.backoff !== undefined && isDefault(policy.backoff)) delete policy.backoff
  setGiven(policy, 'maxAgeMs', maxAge, (value) => readClockMs(complaints, 'retry.maxAge', value, 1, MAX_AGE_MS))
  return Object.keys(policy).length === 0 ? undefined : policy
}

function understandBackoff(complaints: Complaints, value: unknown): Backoff | undefined {
  const known = ['type', 'initial', 'factor', 'max', 'jitter', 'delays']
  const record = readRecord(complaints, 'retry.backoff', value, known)
  if (record === undefined) return undefined
  const fallback = record.delays === undefined ? 'exponential' : 'list'
  const type = record.type === undefined ? fallback : readChoice(complaints, 'retry.backoff.type', record.type, TYPES)
  if (type === undefined) return undefined
  for (const field of ['initial', 'factor', 'max', 'delays'] as const) {
    if (record[field] !== undefined && !FIELDS_OF[type].some((used) => used === field)) {
      complaints.add(`retry.backoff.${field}`, `has no meaning for a backoff of type ${type}`)
    }
  }
  const jitter = readJitter(complaints, record.jitter, type)
  if (type === 'list') return { type, delaysMs: readDelays(complaints, record.delays), jitter }
  const initialMs = readDelay(complaints, 'retry.backoff.initial', record.initial, DEFAULT_INITIAL_MS)
  if (type === 'fixed') return { type, initialMs, jitter }
  const maxMs = readDelay(complaints, 'retry.backoff.max', record.max, Math.max(DEFAULT_MAX_MS, initialMs))
  if (maxMs < initialMs) complaints.add('retry.backoff.max', 'must not be less than initial')
  if (type === 'linear') return { type, initialMs, maxMs, jitter }
  const factor =
    record.factor === undefined ? DEFAULT_FACTOR : readNumber(complaints, 'retry.backoff.factor', record.factor, 1, 100)
  return { type, initialMs, factor: factor ?? DEFAULT_FACTOR, maxMs, jitter }
}

/** Whoever lists the delays, or fixes them, means them; where a formula makes them, half is left to chance. */
function readJitter(complaints: Complaints, value: unknown, type: Backoff['type']): number {
  const usual = type === 'exponential' || type === 'linear' ? DEFAULT_BACKOFF.jitter : 0
  if (value === undefined) return usual
  return readNumber(complaints, 'retry.backoff.jitter', value, 0, 1) ?? usual
}

function readDelay(complaints: Complaints, path: string, value: unknown, usual: number): number {
  return value === undefined ? usual : (readClockMs(complaints, path, value, 1, MAX_DELAY_MS) ?? usual)
}

function readDelays(complaints: Complaints, value: unknown): number[] {
  const path = 'retry.backoff.delays'
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_DELAYS) {
    complaints.add(path, `must be a list of 1 to ${MAX_DELAYS} durations`)
    return []
  }
  return value.map((delay, index) => readClockMs(complaints, `${path}[${index}]`, delay, 0, MAX_DELAY_MS) ?? 0)
}

function isDefault(backoff: Backoff): boolean {
  return JSON.stringify(backoff) === JSON.stringify(DEFAULT_BACKOFF)
}
