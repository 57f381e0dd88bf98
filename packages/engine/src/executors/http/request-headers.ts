import { fill, hasTemplate, type TemplateValues } from '../../job/template.ts'
import type { Instant } from '../../runtime/clock.ts'
import { invalidTarget } from './call-failed.ts'
import type { HttpCall, HttpDeps, SigningSecrets } from './http-call.ts'
import { signatureOf } from './signature.ts'

const USER_AGENT = 'user-agent: belfry/0.1\r\n'
const JSON_TYPE = 'application/json'
const JSON_LINE = `content-type: ${JSON_TYPE}\r\n`
/** What a header's value may hold; anything else could end it. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

export interface HeaderParts {
  values: TemplateValues
  /** Newest first; the request is signed with each. */
  keys: SigningSecrets
  body: { content: string | Buffer | null; contentType: string | null }
  token: string | null
}

/** The lines of all headers: Belfry's own, the job's, and the usual ones that the job does not have. */
export function buildHeaders(call: HttpCall, { traceParents }: HttpDeps, now: Instant, parts: HeaderParts): string {
  const { runId, jobId, attempt, nominalAt, callbackUrl, target } = call
  const { keys, body, token, values } = parts
  const webhookId = runId.replace('.', '_')
  const timestamp = secondsText(now)
  const signatures = signaturesOf(keys, `${webhookId}.${timestamp}.`, body.content)
  // In as few pieces as possible: this is done for every call, and each piece is a string of its own.
  let lines = `idempotency-key: ${runId}\r\nbelfry-job-id: ${jobId}\r\nbelfry-run-id: ${runId}\r\nbelfry-attempt: ${attempt}\r\nbelfry-nominal-at: ${dateText(nominalAt)}\r\nwebhook-id: ${webhookId}\r\nwebhook-timestamp: ${timestamp}\r\nwebhook-signature: ${signatures}\r\n`
  if (callbackUrl !== undefined) lines += `belfry-callback-url: ${callbackUrl}\r\n`
  if (token !== null) {
    if (!VALUE.test(token)) throw invalidTarget('the access token holds what no header can')
    lines += `authorization: Bearer ${token}\r\n`
  }
  const given = target.headers === undefined ? NOTHING_GIVEN : givenLines(target.headers, values)
  if (given !== NOTHING_GIVEN) lines += given.lines
  if (body.contentType !== null && !given.names.includes(' content-type '))
    lines += body.contentType === JSON_TYPE ? JSON_LINE : `content-type: ${body.contentType}\r\n`
  if (!given.names.includes(' user-agent ')) lines += USER_AGENT
  if (!given.names.includes(' traceparent ')) lines += `traceparent: ${call.traceparent ?? traceParents.next()}\r\n`
  return lines
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

/** Their lines, and their names in lower case between spaces. */
interface Given {
  lines: string
  names: string
}

const NOTHING_GIVEN: Given = { lines: '', names: '' }

function givenLines(given: Record<string, string>, values: TemplateValues): Given {
  let lines = ''
  let names = ' '
  for (const name in given) {
    const text = given[name] as string
    const value = hasTemplate(text) ? fill(text, values) : text
    if (!VALUE.test(value)) throw invalidTarget(`the header ${name} would hold what no header can`)
    names += `${name.toLowerCase()} `
    lines += `${name}: ${value}\r\n`
  }
  return { lines, names }
}

function signaturesOf(keys: HeaderParts['keys'], head: string, body: string | Buffer | null): string {
  let signatures = ''
  for (const { secret } of keys) {
    const signature = signatureOf(secret, head, body)
    signatures = signatures === '' ? signature : `${signatures} ${signature}`
  }
  return signatures
}
