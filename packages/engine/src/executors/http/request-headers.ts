import { fill, hasTemplate, type TemplateValues } from '../../job/template.ts'
import type { Instant } from '../../runtime/clock.ts'
import { invalidTarget } from './call-failed.ts'
import type { HttpCall, HttpDeps, SigningSecrets } from './http-call.ts'
import { signatureOf } from './signature.ts'

const USER_AGENT = 'belfry/0.1'
/** What a header's value may hold; anything else could end it. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

export interface HeaderParts {
  values: TemplateValues
  /** Newest first; the request is signed with each. */
  keys: SigningSecrets
  body: { content: string | Buffer | null; contentType: string | null }
  token: string | null
}

/** Names and values in turn: Belfry's own headers, the job's, and the usual ones that the job does not have. */
export function buildHeaders(call: HttpCall, { traceParents }: HttpDeps, now: Instant, parts: HeaderParts): string[] {
  const { runId, jobId, attempt, nominalAt, callbackUrl, target } = call
  const { keys, body, token, values } = parts
  const webhookId = runId.replace('.', '_')
  const timestamp = secondsText(now)
  const signatures = signaturesOf(keys, `${webhookId}.${timestamp}.`, body.content)
  const headers = ['idempotency-key', runId, 'belfry-job-id', jobId, 'belfry-run-id', runId]
  headers.push('belfry-attempt', String(attempt), 'belfry-nominal-at', dateText(nominalAt))
  headers.push('webhook-id', webhookId, 'webhook-timestamp', timestamp, 'webhook-signature', signatures)
  if (callbackUrl !== undefined) headers.push('belfry-callback-url', callbackUrl)
  if (token !== null) {
    if (!VALUE.test(token)) throw invalidTarget('the access token holds what no header can')
    headers.push('authorization', `Bearer ${token}`)
  }
  const given = target.headers === undefined ? '' : addGiven(headers, target.headers, values)
  if (body.contentType !== null && !given.includes(' content-type ')) headers.push('content-type', body.contentType)
  if (!given.includes(' user-agent ')) headers.push('user-agent', USER_AGENT)
  if (!given.includes(' traceparent ')) headers.push('traceparent', call.traceparent ?? traceParents.next())
  return headers
}

// Calls come in bursts, so the last text of each kind is remembered.
let lastSecond = -1
let lastSecondText = ''
let lastDate = Number.NaN
let lastDateText = ''

function secondsText(now: Instant): string {
  const second = Math.floor(now / 1_000)
  if (second !== lastSecond) lastSecondText = String(second)
  lastSecond = second
  return lastSecondText
}

function dateText(instant: Instant): string {
  if (instant !== lastDate) lastDateText = new Date(instant).toISOString()
  lastDate = instant
  return lastDateText
}

/** Answers the names that were added, in lower case between spaces. */
function addGiven(headers: string[], given: Record<string, string>, values: TemplateValues): string {
  let names = ' '
  for (const name in given) {
    const text = given[name] as string
    const value = hasTemplate(text) ? fill(text, values) : text
    if (!VALUE.test(value)) throw invalidTarget(`the header ${name} would hold what no header can`)
    names += `${name.toLowerCase()} `
    headers.push(name, value)
  }
  return names
}

function signaturesOf(keys: HeaderParts['keys'], head: string, body: string | Buffer | null): string {
  let signatures = ''
  for (const { secret } of keys) {
    const signature = signatureOf(secret, head, body)
    signatures = signatures === '' ? signature : `${signatures} ${signature}`
  }
  return signatures
}
