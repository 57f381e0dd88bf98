import type { HttpTarget } from '../../job/definition.ts'
import { fill, fillJson, hasTemplate, secretOf, type TemplateValues, templatesIn } from '../../job/template.ts'
import type { Instant } from '../../runtime/clock.ts'
import { invalidTarget } from './call-failed.ts'
import type { HttpCall, HttpDeps, SigningSecrets } from './http-call.ts'
import type { TokenRequest } from './oauth-tokens.ts'
import type { Redaction } from './redaction.ts'
import { buildHeaders } from './request-headers.ts'
import type { TargetUrl } from './target-url.ts'
import type { OutgoingRequest } from './write-request.ts'

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

/**
 * Everything between a call and its bytes. Throws CallFailed where no request can be made of it. The commonest call has
 * neither secrets nor tokens, and its keys are known: it waits for nothing.
 */
export function prepare(call: HttpCall, deps: HttpDeps, redaction: Redaction): Prepared | Promise<Prepared> {
  const { target, tenantId, payloadRef } = call
  const now = deps.clock.now()
  const keys = deps.signingKeys.known(tenantId)
  const named = secretsNamedBy(target)
  if (keys === null || named.size > 0 || target.auth !== undefined || payloadRef !== undefined)
    return gather(call, deps, named, redaction)
  const values = valuesOf(call, NO_SECRETS)
  const url = allowedUrl(call, values, deps)
  const body = hasBody(target) ? bodyOf(call, values) : NO_BODY
  return assemble(call, deps, { now, url, values, body, keys, bearer: null })
}

async function gather(
  call: HttpCall,
  deps: HttpDeps,
  named: ReadonlySet<string>,
  redaction: Redaction,
): Promise<Prepared> {
  const { target, tenantId, payloadRef } = call
  const values = valuesOf(call, named.size === 0 ? NO_SECRETS : await readSecrets(named, tenantId, deps, redaction))
  const url = allowedUrl(call, values, deps)
  let body = NO_BODY
  if (hasBody(target)) {
    const isStored = target.body === undefined && payloadRef !== undefined
    body = isStored ? await storedBody(payloadRef, tenantId, deps) : bodyOf(call, values)
  }
  const bearer = target.auth === undefined ? null : await bearerOf(target.auth, tenantId, deps, values, redaction)
  const keys = await deps.signingKeys.current(tenantId)
  return assemble(call, deps, { now: deps.clock.now(), url, values, body, keys, bearer })
}

interface Parts {
  now: Instant
  url: TargetUrl
  values: TemplateValues
  body: Body
  keys: SigningSecrets
  bearer: Prepared['bearer']
}

function assemble(call: HttpCall, deps: HttpDeps, { now, url, values, body, keys, bearer }: Parts): Prepared {
  const headers = buildHeaders(call, deps, now, { values, keys, body, token: bearer?.token ?? null })
  const method = methodOf(call.target)
  return { request: { origin: url.origin, path: url.path, method, headers, body: body.content }, bearer }
}

const methodOf = ({ method }: HttpTarget): string => method ?? 'POST'

const hasBody = (target: HttpTarget): boolean => methodOf(target) !== 'GET' && methodOf(target) !== 'HEAD'

const valuesOf = (call: HttpCall, secrets: ReadonlyMap<string, string>): TemplateValues => ({
  nominalAt: call.nominalAt,
  runId: call.runId,
  attempt: call.attempt,
  secrets,
})

const NONE: ReadonlySet<string> = new Set()

function secretsNamedBy({ url, headers, body, auth }: HttpTarget): ReadonlySet<string> {
  let names: Set<string> | null = null
  const collect = (text: string): void => {
    if (!hasTemplate(text)) return
    for (const template of templatesIn(text)) {
      const secret = secretOf(template)
      if (secret === undefined) continue
      names ??= new Set()
      names.add(secret)
    }
  }
  collect(url)
  for (const name in headers) collect(headers[name] as string)
  if (body && 'text' in body) collect(body.text)
  else if (body && 'json' in body) collect(JSON.stringify(body.json))
  if (auth) {
    collect(auth.clientId)
    collect(auth.clientSecret)
  }
  return names ?? NONE
}

async function readSecrets(
  names: ReadonlySet<string>,
  tenantId: number,
  deps: HttpDeps,
  redaction: Redaction,
): Promise<ReadonlyMap<string, string>> {
  const secrets = await deps.secrets.resolve(tenantId, [...names])
  for (const name of names) {
    const value = secrets.get(name)
    if (value === undefined) throw invalidTarget(`there is no secret "${name}"`)
    redaction.add(value, `{{secret:${name}}}`)
  }
  return secrets
}

function allowedUrl({ target, url: known }: HttpCall, values: TemplateValues, { transport }: HttpDeps): TargetUrl {
  const isFilled = !hasTemplate(target.url)
  const url = isFilled ? known : transport.urls.of(fill(target.url, values, encodeURIComponent))
  if (url.refusal !== null) throw invalidTarget(url.refusal)
  return url
}

function bodyOf({ target, payload }: HttpCall, values: TemplateValues): Body {
  const { body } = target
  if (body === undefined) {
    return payload === undefined ? NO_BODY : { content: JSON.stringify(payload), contentType: 'application/json' }
  }
  if ('base64' in body) {
    return { content: Buffer.from(body.base64, 'base64'), contentType: 'application/octet-stream' }
  }
  if ('text' in body) {
    const content = hasTemplate(body.text) ? fill(body.text, values) : body.text
    return { content, contentType: 'text/plain; charset=utf-8' }
  }
  const json = JSON.stringify(body.json)
  const content = hasTemplate(json) ? JSON.stringify(fillJson(body.json, values)) : json
  return { content, contentType: 'application/json' }
}

async function storedBody(ref: string, tenantId: number, { payloads }: HttpDeps): Promise<Body> {
  const stored = await payloads.get(tenantId, ref)
  if (!stored) throw invalidTarget(`there is no payload ${ref}`)
  return { content: stored.bytes, contentType: stored.contentType }
}

async function bearerOf(
  auth: NonNullable<HttpTarget['auth']>,
  tenantId: number,
  { tokens }: HttpDeps,
  values: TemplateValues,
  redaction: Redaction,
): Promise<Prepared['bearer']> {
  const clientId = fill(auth.clientId, values)
  const clientSecret = fill(auth.clientSecret, values)
  if (clientSecret === auth.clientSecret) redaction.add(clientSecret, '[redacted]')
  const from: TokenRequest = { ...auth, tenantId, clientId, clientSecret }
  const got = await tokens.get(from)
  redaction.add(got.token, '[access token]')
  return { from, ...got }
}
