import type { AnswerHead } from './answer-head.ts'
import type { Exchange } from './exchange.ts'
import type { Redaction } from './redaction.ts'

/** What is kept of an answer, without anything that is secret. */
export interface ResponseRecord {
  headers: Record<string, string>
  body: string
  truncated: boolean
  /** In whole milliseconds; name resolution and connecting only where this call caused them. */
  timings: { dnsMs?: number; connectMs?: number; firstByteMs: number; totalMs: number }
}

export const MAX_BODY_BYTES = 4_096
const MAX_HEADERS = 50
const MAX_HEADER_VALUE = 1_024
const MAX_KNOWN_NAMES = 1_000
const MAX_KNOWN_NAME = 64
/** Parts of names of headers that a target hands out for the next request, or repeats of the last. */
const SECRET_PARTS = ['cookie', 'authorization', 'api-key', 'token', 'secret']

/** The record of an answer as JSON: bounded, storable, and without the values of secrets. Written by hand, since it is done for every call. */
export function recordOf(exchange: Exchange, head: AnswerHead, redaction: Redaction): string {
  const { startedAt, firstByteAt, endedAt, dnsMs, connectMs } = exchange
  const { body, isCut } = bodyOf(exchange.chunks, redaction)
  const text = body === '' ? '""' : JSON.stringify(body)
  const truncated = exchange.isTruncated || isCut
  const dns = dnsMs === undefined ? '' : `"dnsMs":${dnsMs},`
  const connect = connectMs === undefined ? '' : `"connectMs":${connectMs},`
  return `{"headers":${keptHeaders(head, redaction)},"body":${text},"truncated":${truncated},"timings":{${dns}${connect}"firstByteMs":${firstByteAt - startedAt},"totalMs":${endedAt - startedAt}}}`
}

function keptHeaders(head: AnswerHead, redaction: Redaction): string {
  if (!redaction.isEmpty) return JSON.stringify(headersOf(head.headers, redaction))
  head.kept ??= JSON.stringify(headersOf(head.headers, redaction))
  return head.kept
}

/** The value of the first header of that name. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const candidate = headers[i] as string
    if (candidate.length === name.length && candidate.toLowerCase() === name) return headers[i + 1]
  }
  return undefined
}

/** Names of headers as they came, and as they are kept. Null: not at all. */
const keptNames = new Map<string, string | null>()

/** Targets send the same few names all the time. */
function keptName(name: string): string | null {
  const known = keptNames.get(name)
  if (known !== undefined) return known
  const lower = name.toLowerCase()
  // Assigning to __proto__ would not make a member of it.
  const isKept = lower !== '__proto__' && !SECRET_PARTS.some((part) => lower.includes(part))
  if (keptNames.size >= MAX_KNOWN_NAMES) keptNames.clear()
  if (name.length <= MAX_KNOWN_NAME) keptNames.set(name, isKept ? lower : null)
  return isKept ? lower : null
}

function headersOf(raw: readonly string[], redaction: Redaction): Record<string, string> {
  const headers: Record<string, string> = {}
  let count = 0
  for (let i = 0; i + 1 < raw.length && count < MAX_HEADERS; i += 2) {
    const name = keptName(raw[i] as string)
    if (name === null) continue
    const value = redaction.of(raw[i + 1] as string)
    const earlier = Object.hasOwn(headers, name) ? headers[name] : undefined
    if (earlier === undefined) count++
    const whole = earlier === undefined ? value : `${earlier}, ${value}`
    headers[name] = whole.length <= MAX_HEADER_VALUE ? whole : whole.slice(0, MAX_HEADER_VALUE)
  }
  return headers
}

/** Decoded text of at most 4 KiB. More than that is looked at, so that a secret at the edge is seen as a whole. */
function bodyOf(chunks: readonly Buffer[], redaction: Redaction): { body: string; isCut: boolean } {
  const [first] = chunks
  if (first === undefined) return { body: '', isCut: false }
  const bytes = chunks.length === 1 ? first : Buffer.concat(chunks)
  const end = bytes.length <= MAX_BODY_BYTES ? bytes.length : wholeCharacters(bytes, MAX_BODY_BYTES)
  if (redaction.isEmpty) return cutText(bytes.toString('utf8', 0, end), bytes.length > end)
  const text = bytes.toString('utf8', 0, bytes.length)
  return cutText(redaction.of(text, bytes.toString('utf8', 0, end).length), bytes.length > end)
}

function cutText(text: string, wasCut: boolean): { body: string; isCut: boolean } {
  const clean = text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text
  // A text of that many characters cannot have more bytes.
  if (clean.length * 3 <= MAX_BODY_BYTES) return { body: clean, isCut: wasCut }
  const bytes = Buffer.from(clean)
  if (bytes.length <= MAX_BODY_BYTES) return { body: clean, isCut: wasCut }
  return { body: bytes.toString('utf8', 0, wholeCharacters(bytes, MAX_BODY_BYTES)), isCut: true }
}

/** The end of the last character that fits before `limit`. */
function wholeCharacters(bytes: Buffer, limit: number): number {
  let end = limit
  // At most three bytes belong to a character that began earlier.
  for (let back = 0; back < 3 && ((bytes[end] ?? 0) & 0xc0) === 0x80; back++) end--
  return end
}
