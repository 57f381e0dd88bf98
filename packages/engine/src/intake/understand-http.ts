import { type Complaints, readChoice, readRecord, readText, setGiven } from '../input/read-fields.ts'
import type { HttpTarget } from '../job/definition.ts'
import { hasTemplate } from '../job/template.ts'
import { shown } from '../schedule/not-understood.ts'
import { readHttpBody } from './understand-http-body.ts'
import { readHttpHeaders } from './understand-http-headers.ts'
import { complainAboutTemplates } from './understand-templates.ts'

const FIELDS = ['url', 'method', 'headers', 'body', 'auth', 'succeedOn', 'retryOn', 'failOn'] as const
const AUTH_FIELDS = ['type', 'tokenUrl', 'clientId', 'clientSecret', 'scope', 'audience'] as const
const MAX_URL = 4_096
const MAX_CREDENTIAL = 4_096
const MAX_CODES = 100
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/
const USUAL_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
/** They make a tunnel or send the request back, credentials included. */
const REFUSED_METHODS = new Set(['CONNECT', 'TRACE', 'TRACK'])
/** What a view shows instead of a secret that stands in the job itself. */
export const REDACTED = '[redacted]'

/** An HTTP call as it is stored; `undefined` if it has no URL that could be called. */
export function understandHttp(complaints: Complaints, path: string, value: unknown): HttpTarget | undefined {
  if (typeof value === 'string') {
    return complaints.add(path, `must be an object, not ${shown(value)}`, `{ url: ${JSON.stringify(value)} }`)
  }
  const record = readRecord(complaints, path, value, FIELDS)
  if (record === undefined) return undefined
  const url = readUrl(complaints, `${path}.url`, record.url)
  const target: HttpTarget = { url: url ?? '' }
  const method = record.method === undefined ? 'POST' : readMethod(complaints, `${path}.method`, record.method)
  if (method !== undefined && method !== 'POST') target.method = method
  setGiven(target, 'headers', record.headers, (value) => readHttpHeaders(complaints, `${path}.headers`, value))
  if (record.body !== undefined) {
    if (method === 'GET' || method === 'HEAD') complaints.add(`${path}.body`, `a ${method} request has no body`)
    setGiven(target, 'body', record.body, (value) => readHttpBody(complaints, `${path}.body`, value))
  }
  if (record.auth !== undefined) {
    setGiven(target, 'auth', record.auth, (value) => readAuth(complaints, `${path}.auth`, value))
    if (Object.keys(target.headers ?? {}).some((name) => name.toLowerCase() === 'authorization')) {
      complaints.add(`${path}.auth`, 'cannot stand beside an authorization header: give one of them')
    }
  }
  addCodes(complaints, path, target, record)
  return url === undefined ? undefined : target
}

function readUrl(complaints: Complaints, path: string, value: unknown): string | undefined {
  if (value === undefined) return complaints.add(path, 'is missing: it says where to call')
  const text = readText(complaints, path, value, MAX_URL)
  if (text === undefined) return undefined
  const authority = /^[^:/?#]*:\/*([^/?#]*)/.exec(text)
  if (!authority && /^[\w-]+(\.[\w-]+)+(?:[:/?]|$)/.test(text)) {
    return complaints.add(path, `${shown(text)} lacks its scheme`, `https://${text}`)
  }
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return complaints.add(path, `${shown(text)} is not a URL such as "https://example.com/hooks/tick"`)
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return complaints.add(path, `must begin with https:// or http://, not ${url.protocol}`)
  }
  if (hasTemplate(authority?.[0] ?? '')) return complaints.add(path, 'may hold templates in its path and query only')
  if (url.username !== '' || url.password !== '') {
    return complaints.add(path, 'must not hold a password: put it into the authorization header, as a secret')
  }
  if (text.includes('#')) return complaints.add(path, 'must not hold a fragment: no server ever sees one')
  complainAboutTemplates(complaints, path, text)
  return text
}

function readMethod(complaints: Complaints, path: string, value: unknown): string | undefined {
  if (typeof value !== 'string' || !TOKEN.test(value)) {
    return complaints.add(path, `must be a method such as "POST", not ${shown(value)}`)
  }
  const upper = value.toUpperCase()
  if (REFUSED_METHODS.has(upper)) return complaints.add(path, `${upper} cannot be used`)
  // Methods are told apart by case; nobody means a method of their own by `post`.
  return USUAL_METHODS.has(upper) ? upper : value
}

function readAuth(complaints: Complaints, path: string, value: unknown): HttpTarget['auth'] {
  const record = readRecord(complaints, path, value, AUTH_FIELDS)
  if (record === undefined) return undefined
  const read = (field: (typeof AUTH_FIELDS)[number], maxLength = MAX_CREDENTIAL): string | undefined => {
    if (record[field] === undefined) return complaints.add(`${path}.${field}`, 'is missing')
    return readText(complaints, `${path}.${field}`, record[field], maxLength)
  }
  if (record.type !== undefined) readChoice(complaints, `${path}.type`, record.type, ['oauth2'])
  const tokenUrl = readUrl(complaints, `${path}.tokenUrl`, record.tokenUrl)
  if (tokenUrl !== undefined && hasTemplate(tokenUrl)) complaints.add(`${path}.tokenUrl`, 'may not hold templates')
  const clientId = read('clientId')
  const clientSecret = read('clientSecret')
  if (clientId !== undefined) complainAboutTemplates(complaints, `${path}.clientId`, clientId)
  if (clientSecret !== undefined) complainAboutTemplates(complaints, `${path}.clientSecret`, clientSecret)
  if (clientSecret === REDACTED) {
    complaints.add(`${path}.clientSecret`, 'is what views show instead of it: give the secret, best as {{secret:name}}')
  }
  const scope = record.scope === undefined ? undefined : read('scope')
  const audience = record.audience === undefined ? undefined : read('audience')
  if (tokenUrl === undefined || clientId === undefined || clientSecret === undefined) return undefined
  return {
    tokenUrl,
    clientId,
    clientSecret,
    ...(scope === undefined ? {} : { scope }),
    ...(audience === undefined ? {} : { audience }),
  }
}

/** Each status is judged by one list at most, so that nobody has to know which of them wins. */
function addCodes(complaints: Complaints, path: string, target: HttpTarget, record: Record<string, unknown>): void {
  const seen = new Map<string, string>()
  for (const field of ['succeedOn', 'retryOn', 'failOn'] as const) {
    const value = record[field]
    if (value === undefined) continue
    if (!Array.isArray(value) || value.length > MAX_CODES) {
      complaints.add(`${path}.${field}`, `must be a list of at most ${MAX_CODES} codes such as "404" or "4xx"`)
      continue
    }
    const codes: string[] = []
    for (const [index, item] of value.entries()) {
      const code = readCode(complaints, `${path}.${field}[${index}]`, item)
      if (code === undefined || codes.includes(code)) continue
      const other = seen.get(code)
      if (other !== undefined) complaints.add(`${path}.${field}[${index}]`, `${code} stands in ${other}, too`)
      seen.set(code, field)
      codes.push(code)
    }
    if (codes.length > 0) target[field] = codes
  }
}

function readCode(complaints: Complaints, path: string, value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text === 'string' && /^(?:[2-5]\d\d|[2-5]xx)$/i.test(text)) return text.toLowerCase()
  return complaints.add(path, `must be a status from 200 to 599, or a class such as "4xx", not ${shown(value)}`)
}
