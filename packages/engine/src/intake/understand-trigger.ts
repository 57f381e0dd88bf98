import { BelfryError, refusal } from '../errors.ts'
import { Complaints, isRecord, join, readChoice } from '../input/read-fields.ts'
import type { Definition } from '../job/definition.ts'
import { nearestName } from '../job/nearest-name.ts'
import { OVERLAP, type Overlap } from '../job/states.ts'
import { complainAboutSize, copyPayload, TOO_LARGE } from './understand-payload.ts'

const FIELDS = ['payload', 'overlap'] as const
const OVERLAPS = Object.keys(OVERLAP) as Overlap[]

export interface TriggerOptions {
  /** For this run alone, in place of its job's. */
  payload?: unknown
  /** For this run alone: what happens while another one is alive. */
  overlap?: Overlap
}

export interface UnderstoodTrigger {
  /** JSON; null: it is performed with its job's. */
  payloadJson: string | null
  /** Null: as the job says. */
  overlap: Overlap | null
}

export const AS_THE_JOB_SAYS: UnderstoodTrigger = { payloadJson: null, overlap: null }

export function understandTrigger(options: unknown): UnderstoodTrigger {
  const complaints = new Complaints()
  try {
    const understood = understand(complaints, options)
    if (complaints.list.length === 0) return understood
  } catch (cause) {
    // A getter, a proxy or a toJSON of the caller threw.
    throw new BelfryError('invalid_argument', 'what the run shall be triggered with cannot be read', { cause })
  }
  const isOnlyTooLarge = complaints.list.length === 1 && complaints.list[0]?.message === TOO_LARGE
  throw complaints.error(isOnlyTooLarge ? 'payload_too_large' : 'invalid_argument')
}

function understand(complaints: Complaints, options: unknown): UnderstoodTrigger {
  if (!isRecord(options)) {
    complaints.add('', 'must be an object such as { payload: {} }')
    return AS_THE_JOB_SAYS
  }
  for (const name of Object.keys(options)) {
    if ((FIELDS as readonly string[]).includes(name) || options[name] === undefined) continue
    complaints.add(join('', name), `there is no such option; there is ${FIELDS.join(', ')}`, nearestName(name, FIELDS))
  }
  const { payload, overlap } = options
  return {
    payloadJson: payload === undefined ? null : readPayloadJson(complaints, payload),
    overlap: overlap === undefined ? null : (readChoice(complaints, 'overlap', overlap, OVERLAPS) ?? null),
  }
}

function readPayloadJson(complaints: Complaints, payload: unknown): string | null {
  const copy = copyPayload(complaints, 'payload', payload)
  complainAboutSize(complaints, 'payload', copy)
  return JSON.stringify(copy) ?? null
}

/** A call that has a body of its own, or none, does not send its payload. */
export function mustTakePayload({ http }: Definition): void {
  if (http === undefined) return
  const message =
    http.body !== undefined
      ? "cannot stand beside the job's http.body, which is what it sends"
      : http.method === 'GET' || http.method === 'HEAD'
        ? `would be the body, and a ${http.method} request has none`
        : null
  if (message === null) return
  throw refusal('invalid_argument', 'payload', message)
}
