import { fill, fillJson, hasTemplate, secretOf, type TemplateValues, templatesIn } from '../../job/template.ts'
import { invalidTarget } from './call-failed.ts'
import type { HttpCall, HttpDeps } from './http-call.ts'
import type { TokenRequest } from './oauth-tokens.ts'
import type { Redaction } from './redaction.ts'
import { signatureOf } from './signature.ts'
import type { TargetUrl } from './target-url.ts'
import type { OutgoingRequest } from './transport.ts'

/** A request, and the token it carries. */
export interface Prepared {
  request: OutgoingRequest
  bearer: { from: TokenRequest; token: string; isFresh: boolean } | null
}

interface Body {
  content: string | Buffer | null
  contentType: string | null
}

const NO_BODY: Body = { content: null, contentType: null }
const NO_SECRETS: ReadonlyMap<string, string> = new Map()
/** What a header's value may hold; anything else could end it. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const USER_AGENT = 'belfry/0.1'

/** Everything between a call and its bytes. Throws CallFailed where no request can be made of it. */
export async function prepare(call: HttpCall, deps: HttpDeps, redaction: Redaction): Promise<Prepared> {
  const { target, tenantId } = call
  const secrets = await readSecrets(call, deps, redaction)
  const values: TemplateValues = { nominalAt: call.nominalAt, runId: call.runId, attempt: call.attempt, secrets }
  const url = urlOf(target.url, values, deps)
  if (url.refusal !== null) throw invalidTarget(url.refusal)
  const method = target.method ?? 'POST'
  const body = method === 'GET' || method === 'HEAD' ? NO_BODY : await bodyOf(call, deps, values)
  const bearer = target.auth === undefined ? null : await bearerOf(call, deps, values, redaction)
  const keys = await deps.signingKeys.current(tenantId)
  const headers = ownHeaders(call, deps, { keys, body: body.content })
  addHeaders(headers, target.headers, values, body.contentType, deps, call.traceparent)
  if (bearer) headers.push('authorization', `Bearer ${bearer.token}`)
  return { request: { origin: url.origin, path: url.path, method, headers, body: body.content }, bearer }
}

async function readSecrets(
  { target, tenantId }: HttpCall,
  deps: HttpDeps,
  redaction: Redaction,
): Promise<ReadonlyMap<string, string>> {
  const names = new Set<string>()
  const collect = (text: string | undefined): void => {
    if (text === undefined || !hasTemplate(text)) return
    for (const template of templatesIn(text)) {
      const secret = secretOf(template)
      if (secret !== undefined) names.add(secret)
    }
  }
  const { url, headers, body, auth } = target
  collect(url)
  for (const name in headers) collect(headers[name])
  if (body && 'text' in body) collect(body.text)
  else if (body && 'json' in body) collect(JSON.stringify(body.json))
  collect(auth?.clientId)
  collect(auth?.clientSecret)
  if (names.size === 0) return NO_SECRETS
  const secrets = await deps.secrets.resolve(tenantId, [...names])
  for (const name of names) {
    const value = secrets.get(name)
    if (value === undefined) throw invalidTarget(`there is no secret "${name}"`)
    redaction.add(value, `{{secret:${name}}}`)
  }
  return secrets
}

function urlOf(url: string, values: TemplateValues, { transport }: HttpDeps): TargetUrl {
  return hasTemplate(url) ? transport.urls.read(fill(url, values, encodeURIComponent)) : transport.urls.recall(url)
}

async function bodyOf(call: HttpCall, deps: HttpDeps, values: TemplateValues): Promise<Body> {
  const { target, payload, payloadRef, tenantId } = call
  const { body } = target
  if (body !== undefined) {
    if ('base64' in body) {
      return { content: Buffer.from(body.base64, 'base64'), contentType: 'application/octet-stream' }
    }
    if ('text' in body) {
      const content = hasTemplate(body.text) ? fill(body.text, values) : body.text
      return { content, contentType: 'text/plain; charset=utf-8' }
    }
    const json = JSON.stringify(body.json)
    return {
      content: hasTemplate(json) ? JSON.stringify(fillJson(body.json, values)) : json,
      contentType: 'application/json',
    }
  }
  if (payloadRef !== undefined) {
    const stored = await deps.payloads.get(tenantId, payloadRef)
    if (!stored) throw invalidTarget(`there is no payload ${payloadRef}`)
    return { content: stored.bytes, contentType: stored.contentType }
  }
  return payload === undefined ? NO_BODY : { content: JSON.stringify(payload), contentType: 'application/json' }
}

async function bearerOf(
  { target, tenantId }: HttpCall,
  { tokens }: HttpDeps,
  values: TemplateValues,
  redaction: Redaction,
): Promise<Prepared['bearer']> {
  const { auth } = target
  if (auth === undefined) return null
  const from: TokenRequest = {
    ...auth,
    tenantId,
    clientId: fill(auth.clientId, values),
    clientSecret: fill(auth.clientSecret, values),
  }
  if (from.clientSecret === auth.clientSecret) redaction.add(from.clientSecret, '[redacted]')
  const got = await tokens.get(from)
  redaction.add(got.token, '[access token]')
  return { from, ...got }
}

function ownHeaders(
  call: HttpCall,
  { clock }: HttpDeps,
  signed: { keys: readonly { secret: Buffer }[]; body: string | Buffer | null },
): string[] {
  const { runId } = call
  const webhookId = runId.replaceAll('.', '_')
  const timestamp = String(Math.floor(clock.now() / 1_000))
  const head = `${webhookId}.${timestamp}.`
  let signatures = ''
  for (const { secret } of signed.keys) {
    signatures += `${signatures === '' ? '' : ' '}${signatureOf(secret, head, signed.body)}`
  }
  const headers = ['idempotency-key', runId, 'belfry-job-id', call.jobId, 'belfry-run-id', runId]
  headers.push('belfry-attempt', String(call.attempt), 'belfry-nominal-at', new Date(call.nominalAt).toISOString())
  headers.push('webhook-id', webhookId, 'webhook-timestamp', timestamp, 'webhook-signature', signatures)
  if (call.callbackUrl !== undefined) headers.push('belfry-callback-url', call.callbackUrl)
  return headers
}

/** The job's own headers, and the usual ones that it does not have. */
function addHeaders(
  headers: string[],
  given: Record<string, string> | undefined,
  values: TemplateValues,
  contentType: string | null,
  { traceParents }: HttpDeps,
  traceparent: string | undefined,
): void {
  let hasAgent = false
  let hasType = contentType === null
  let hasTrace = false
  for (const name in given) {
    const text = given[name] as string
    const value = hasTemplate(text) ? fill(text, values) : text
    if (!HEADER_VALUE.test(value)) throw invalidTarget(`the header ${name} would hold what no header can`)
    const folded = name.toLowerCase()
    if (folded === 'content-type') hasType = true
    else if (folded === 'user-agent') hasAgent = true
    else if (folded === 'traceparent') hasTrace = true
    headers.push(name, value)
  }
  if (!hasType) headers.push('content-type', contentType as string)
  if (!hasAgent) headers.push('user-agent', USER_AGENT)
  if (!hasTrace) headers.push('traceparent', traceparent ?? traceParents.next())
}
