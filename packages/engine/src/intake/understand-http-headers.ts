import { type Complaints, isRecord, join } from '../input/read-fields.ts'
import { shown } from '../schedule/not-understood.ts'
import { complainAboutTemplates } from './understand-templates.ts'

const MAX_HEADERS = 64
const MAX_VALUE = 8_192
const MAX_ALL = 16_384
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** They belong to the connection, not to the request. */
const HOP_BY_HOP = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'te', 'trailer', 'expect'],
  ...['proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'http2-settings', 'content-encoding'],
])
/** A target must be able to rely on who wrote them. */
const OWN = /^(?:belfry-.*|webhook-.*|idempotency-key)$/

/** `undefined` if there are none, or none that can be understood. */
export function readHttpHeaders(
  complaints: Complaints,
  path: string,
  value: unknown,
): Record<string, string> | undefined {
  if (!isRecord(value)) return complaints.add(path, `must be an object of texts, not ${shown(value)}`)
  const entries = Object.entries(value).filter(([, header]) => header !== undefined)
  if (entries.length > MAX_HEADERS) return complaints.add(path, `must be at most ${MAX_HEADERS}, not ${entries.length}`)
  const headers: [string, string][] = []
  const seen = new Set<string>()
  let size = 0
  for (const [name, header] of entries) {
    const place = join(path, name)
    const folded = name.toLowerCase()
    if (!NAME.test(name)) complaints.add(place, 'is not a name that a header can have')
    else if (HOP_BY_HOP.has(folded)) complaints.add(place, 'is set by the connection and cannot be given')
    else if (OWN.test(folded)) complaints.add(place, 'is set by Belfry and cannot be given')
    else if (seen.has(folded)) complaints.add(place, 'is given twice: case does not count in names of headers')
    else if (readValue(complaints, place, header)) {
      seen.add(folded)
      size += name.length + header.length
      headers.push([name, header])
    }
  }
  if (size > MAX_ALL) complaints.add(path, `must have at most ${MAX_ALL} characters together, not ${size}`)
  return headers.length === 0 ? undefined : Object.fromEntries(headers)
}

function readValue(complaints: Complaints, path: string, value: unknown): value is string {
  if (typeof value !== 'string') {
    const suggestion = typeof value === 'number' || typeof value === 'boolean' ? `"${value}"` : undefined
    complaints.add(path, `must be a text, not ${shown(value)}`, suggestion)
    return false
  }
  if (value.length > MAX_VALUE) {
    complaints.add(path, `must have at most ${MAX_VALUE} characters, not ${value.length}`)
    return false
  }
  if (!VALUE.test(value)) {
    complaints.add(path, 'holds a line break, a control character or a letter that no header can hold')
    return false
  }
  complainAboutTemplates(complaints, path, value)
  return true
}
