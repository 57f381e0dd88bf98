import { type Complaints, readText, readWord, setGiven } from '../input/read-fields.ts'
import { type Definition, HTTP_QUEUE } from '../job/definition.ts'
import { isStoredPayload } from '../vault/payload-ref.ts'
import { understandHttp } from './understand-http.ts'
import { copyPayload, isPlainJson } from './understand-payload.ts'

export const DEFAULT_QUEUE = 'default'
const MAX_PAYLOAD_REF = 2_048

/** Adds who performs the job and what they get: a queue or an HTTP call, and the payload. */
export function addTarget(complaints: Complaints, definition: Definition, job: Record<string, unknown>): void {
  const { queue, http, payload, payloadRef } = job
  if (queue !== undefined) definition.queue = readWord(complaints, 'queue', queue) ?? DEFAULT_QUEUE
  else if (http !== undefined) definition.queue = HTTP_QUEUE
  else if (payload === undefined && payloadRef === undefined) {
    complaints.add('queue', `is missing: a job needs http, a queue, or a payload for the queue "${DEFAULT_QUEUE}"`)
  }
  setGiven(definition, 'http', http, (value) => understandHttp(complaints, 'http', value))
  if (payload !== undefined) {
    definition.payload = isPlainJson(payload) ? payload : copyPayload(complaints, 'payload', payload)
  }
  if (payloadRef !== undefined) {
    if (payload !== undefined) complaints.add('payloadRef', 'cannot stand beside payload: give one of them')
    setGiven(definition, 'payloadRef', payloadRef, (ref) => readText(complaints, 'payloadRef', ref, MAX_PAYLOAD_REF))
  }
  if (definition.http !== undefined) complainAboutBodies(complaints, definition)
}

/** An HTTP call has one body at most: its own, the payload, or the payload that is stored under a reference. */
function complainAboutBodies(complaints: Complaints, { http, payload, payloadRef }: Definition): void {
  const field = payload !== undefined ? 'payload' : payloadRef !== undefined ? 'payloadRef' : undefined
  if (field !== undefined && http?.body !== undefined) {
    complaints.add(field, 'cannot stand beside http.body: without http.body it is the body')
  } else if (field !== undefined && (http?.method === 'GET' || http?.method === 'HEAD')) {
    complaints.add(field, `would be the body, and a ${http.method} request has none`)
  }
  if (payloadRef !== undefined && !isStoredPayload(payloadRef)) {
    complaints.add(
      'payloadRef',
      'must be a payload that was stored here ("pl_…"), since it is the body of an HTTP call',
    )
  }
}
