import {
  type Complaints,
  isRecord,
  isStorable,
  join,
  readChoice,
  readClockMs,
  readInteger,
  readText,
  setGiven,
  unstorable,
} from '../input/read-fields.ts'
import { DEFAULT_PRIORITY, type Definition, usualTimeoutMs } from '../job/definition.ts'
import { DAY_MS } from '../schedule/duration.ts'
import { shown } from '../schedule/not-understood.ts'
import { understandRetry } from './understand-retry.ts'

const DELIVERIES = ['at_least_once', 'at_most_once'] as const
const MAX_TIMEOUT_MS = 7 * DAY_MS
const MAX_DEADLINE_MS = 366 * DAY_MS
const DEFAULT_IDEMPOTENCY_MS = DAY_MS
const MAX_IDEMPOTENCY_MS = 366 * DAY_MS
const MAX_NAME = 255
const MAX_FAIRNESS_KEY = 256
const MAX_LABELS = 64
const MAX_LABEL_NAME = 128
const MAX_LABEL_VALUE = 256

/** Adds name, labels and the policies of an attempt to a definition that has its target, where they differ from the default. */
export function addPolicies(complaints: Complaints, definition: Definition, job: Record<string, unknown>): void {
  const { name, retry, timeout, startDeadline, delivery, labels, priority, fairnessKey } = job
  const clock = (path: string, max: number) => (value: unknown) => readClockMs(complaints, path, value, 1, max)
  const text = (path: string, max: number) => (value: unknown) => readText(complaints, path, value, max)
  setGiven(definition, 'retry', retry, (value) => understandRetry(complaints, value))
  setGiven(definition, 'timeoutMs', timeout, clock('timeout', MAX_TIMEOUT_MS), usualTimeoutMs(definition))
  setGiven(definition, 'startDeadlineMs', startDeadline, clock('startDeadline', MAX_DEADLINE_MS))
  if (delivery !== undefined && readChoice(complaints, 'delivery', delivery, DELIVERIES) === 'at_most_once') {
    definition.delivery = 'at_most_once'
  }
  setGiven(definition, 'labels', labels, (value) => readLabels(complaints, value))
  setGiven(definition, 'name', name, text('name', MAX_NAME))
  const level = (value: unknown) => readInteger(complaints, 'priority', value, 0, 9)
  setGiven(definition, 'priority', priority, level, DEFAULT_PRIORITY)
  setGiven(definition, 'fairnessKey', fairnessKey, text('fairnessKey', MAX_FAIRNESS_KEY))
}

/** `undefined` if there are none, or none that can be understood. */
function readLabels(complaints: Complaints, value: unknown): Record<string, string> | undefined {
  if (!isRecord(value)) return complaints.add('labels', `must be an object of texts, not ${shown(value)}`)
  const entries = Object.entries(value).filter(([, label]) => label !== undefined)
  if (entries.length > MAX_LABELS) {
    return complaints.add('labels', `must be at most ${MAX_LABELS}, not ${entries.length}`)
  }
  const labels: [string, string][] = []
  for (const [name, label] of entries) {
    const path = join('labels', name)
    if (name.trim() === '' || name.length > MAX_LABEL_NAME) {
      complaints.add(path, `has a name that is empty or longer than ${MAX_LABEL_NAME} characters`)
    } else if (!isStorable(name)) {
      complaints.add(path, `has a name that ${unstorable(name)}`)
    } else if (typeof label !== 'string') {
      const suggestion = typeof label === 'number' || typeof label === 'boolean' ? `"${label}"` : undefined
      complaints.add(path, `must be a text, not ${shown(label)}`, suggestion)
    } else if (label.length > MAX_LABEL_VALUE) {
      complaints.add(path, `must have at most ${MAX_LABEL_VALUE} characters, not ${label.length}`)
    } else if (!isStorable(label)) {
      complaints.add(path, unstorable(label))
    } else {
      labels.push([name, label])
    }
  }
  return labels.length === 0 ? undefined : Object.fromEntries(labels)
}

export function readIdempotency(
  complaints: Complaints,
  job: Record<string, unknown>,
): { key: string; ttlMs: number } | null {
  const { idempotencyKey, idempotencyTtl } = job
  if (idempotencyKey === undefined) {
    if (idempotencyTtl !== undefined) complaints.add('idempotencyTtl', 'has no meaning without idempotencyKey')
    return null
  }
  const key = readText(complaints, 'idempotencyKey', idempotencyKey, MAX_NAME)
  const ttlMs =
    idempotencyTtl === undefined
      ? DEFAULT_IDEMPOTENCY_MS
      : readClockMs(complaints, 'idempotencyTtl', idempotencyTtl, 1_000, MAX_IDEMPOTENCY_MS)
  return key === undefined || ttlMs === undefined ? null : { key, ttlMs }
}
