import { BelfryError } from '../errors.ts'
import { Complaints, isRecord, join, readWord } from '../input/read-fields.ts'
import { DEFAULT_OVERLAP, DEFAULT_PRIORITY, type Definition, usualTimeoutMs } from '../job/definition.ts'
import { hash64 } from '../job/ids.ts'
import { nearestName } from '../job/nearest-name.ts'
import { shown } from '../schedule/not-understood.ts'
import { complainAboutNoAfter, readRef, understandAfter } from './understand-after.ts'
import { canonicalJson } from './understand-fingerprint.ts'
import { addLimits, LIMIT_FIELDS } from './understand-limits.ts'
import { complainAboutSize, copyPayload, looksUnstorable, MAX_PAYLOAD_BYTES, TOO_LARGE } from './understand-payload.ts'
import { addPolicies, readIdempotency } from './understand-policies.ts'
import { addTarget, DEFAULT_QUEUE } from './understand-target.ts'
import { addUnique } from './understand-unique.ts'
import { type UnderstoodWhen, understandWhen, WHEN_FIELDS, type When, type WhenContext } from './understand-when.ts'

/**
 * What a user wrote, as the engine means it. Whoever keeps `definition` past the call reads `definitionJson` instead: the
 * payload in it is still the caller's object.
 */
export interface UnderstoodJob {
  tenant: string
  name: string | null
  queue: string
  priority: number
  timeoutMs: number
  when: When
  definition: Definition
  definitionJson: string
  idempotency: { key: string; ttlMs: number; fingerprint: string } | null
  /** The local name by which others of the same call wait for it. */
  ref: string | null
}

export interface UnderstandContext extends WhenContext {
  /** Whose jobs these are, said by the caller's key: a job may repeat it, and name no other. */
  tenant?: string
  /** Stands in the definition, and is no part of what makes two requests the same. */
  createdBy?: string
  /** Of a call that creates several jobs, which may wait for each other. */
  inCall?: boolean
}

const FIELDS = [
  ...['name', 'tenant', ...WHEN_FIELDS, 'queue', 'http', 'payload', 'payloadRef', 'retry', 'timeout', 'priority'],
  ...['after', 'onParentFailure', 'startDeadline', 'delivery', 'labels', 'idempotencyKey', 'idempotencyTtl', 'unique'],
  ...['fairnessKey', ...LIMIT_FIELDS],
]
const KNOWN = new Set([...FIELDS, 'ref'])
const NOT_YET = new Set(['callback'])
/** What others call it. */
const SYNONYMS: Record<string, readonly string[]> = {
  runAt: ['at', 'date', 'time', 'dueAt', 'scheduledAt'],
  cron: ['schedule'],
  every: ['interval', 'repeat'],
  timezone: ['tz', 'zone'],
  queue: ['topic', 'channel'],
  http: ['url', 'webhook', 'request', 'target', 'endpoint'],
  payload: ['data', 'body', 'args', 'input', 'params'],
  retry: ['retries', 'attempts', 'maxAttempts', 'backoff'],
  after: ['dependsOn', 'depends', 'parents', 'needs', 'waitFor'],
  labels: ['tags'],
  concurrency: ['maxConcurrency', 'concurrencyKey', 'concurrencyLimit'],
  rateLimit: ['rate', 'throttle', 'limiter'],
  exclude: ['except', 'holidays', 'calendar', 'calendars'],
}
const MEANT = new Map(Object.entries(SYNONYMS).flatMap(([field, words]) => words.map((word) => [word, field])))

/** Throws one BelfryError that lists everything that is wrong, and nothing else. */
export function understandJob(input: unknown, context: UnderstandContext): UnderstoodJob {
  try {
    return understand(input, context)
  } catch (error) {
    if (error instanceof BelfryError) throw error
    // A getter, a proxy or a toJSON of the caller threw.
    throw new BelfryError('invalid_job', 'The job cannot be read', { cause: error })
  }
}

function understand(input: unknown, context: UnderstandContext): UnderstoodJob {
  const complaints = new Complaints()
  if (!isRecord(input)) {
    complaints.add('', `a job must be an object such as { queue: "emails", payload: {} }, not ${shown(input)}`)
    throw complaints.error('invalid_job')
  }
  complainAboutUnknown(complaints, input)
  const definition: Definition = { queue: DEFAULT_QUEUE }
  if (input.after === undefined) complainAboutNoAfter(complaints, input)
  const { when, asked } =
    input.after === undefined
      ? understandWhen(complaints, input, context)
      : understandAfter(complaints, definition, input)
  const ref = readRef(complaints, input, context.inCall === true)
  addTarget(complaints, definition, input)
  addPolicies(complaints, definition, input)
  addLimits(complaints, definition, input)
  addUnique(complaints, definition, input)
  if (when.kind !== 'now') addWhen(definition, when)
  const tenant = readTenant(complaints, input, context)
  const idempotency = readIdempotency(complaints, input)
  const fingerprint = idempotency && fingerprintOf(definition, asked)
  if (context.createdBy !== undefined) definition.createdBy = context.createdBy
  const definitionJson = writeDefinition(complaints, definition)
  if (complaints.list.length > 0 || tenant === undefined) throw refusal(complaints)
  return {
    tenant,
    name: definition.name ?? null,
    queue: definition.queue,
    priority: definition.priority ?? DEFAULT_PRIORITY,
    timeoutMs: definition.timeoutMs ?? usualTimeoutMs(definition),
    when,
    definition,
    definitionJson,
    idempotency: idempotency && fingerprint ? { ...idempotency, fingerprint } : null,
    ref,
  }
}

function readTenant(
  complaints: Complaints,
  { tenant: given }: Record<string, unknown>,
  { tenant: known }: UnderstandContext,
): string | undefined {
  if (given === undefined || given === known) return known ?? 'default'
  if (known === undefined) return readWord(complaints, 'tenant', given)
  return complaints.add('tenant', 'must be left out: the key says whose job it is')
}

function refusal(complaints: Complaints): BelfryError {
  const [first, second] = complaints.list
  const isOnlyTooLarge = first?.message === TOO_LARGE && second === undefined
  return complaints.error(isOnlyTooLarge ? 'payload_too_large' : 'invalid_job')
}

function complainAboutUnknown(complaints: Complaints, job: Record<string, unknown>): void {
  for (const key of Object.keys(job)) {
    if (KNOWN.has(key) || job[key] === undefined) continue
    if (NOT_YET.has(key)) complaints.add(key, 'is not supported yet')
    else complaints.add(join('', key), 'is not a field of a job', MEANT.get(key) ?? nearestName(key, FIELDS))
    if (complaints.isFull) return
  }
}

function addWhen(definition: Definition, when: Exclude<When, { kind: 'now' }>): void {
  if (when.words !== undefined) definition.when = when.words
  if (when.kind === 'once') return
  definition.schedule = when.schedule
  if (when.overlap !== DEFAULT_OVERLAP) definition.overlap = when.overlap
  if (when.jitterMs !== 0) definition.jitterMs = when.jitterMs
  if (when.maxRuns !== null) definition.maxRuns = when.maxRuns
}

/** The text is judged, not the object: it is what will be stored, whatever a getter says the next time. */
function writeDefinition(complaints: Complaints, definition: Definition): string {
  let json = JSON.stringify(definition)
  const { payload, http } = definition
  const body = http?.body !== undefined && 'json' in http.body ? http.body : undefined
  if (payload === undefined && body === undefined) return json
  if (looksUnstorable(json)) {
    if (payload !== undefined) definition.payload = copyPayload(complaints, 'payload', payload)
    if (body !== undefined) body.json = copyPayload(complaints, 'http.body', body.json)
    json = JSON.stringify(definition)
  }
  // A character takes three bytes at most, so the exact measure is rarely needed.
  if (json.length * 3 > MAX_PAYLOAD_BYTES) {
    if (payload !== undefined) complainAboutSize(complaints, 'payload', definition.payload)
    if (body !== undefined) complainAboutSize(complaints, 'http.body', body.json)
  }
  return json
}

function fingerprintOf(definition: Definition, asked: UnderstoodWhen['asked']): string {
  return hash64(canonicalJson({ ...definition, schedule: asked }))
}
