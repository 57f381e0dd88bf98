import { isUtf8 } from 'node:buffer'
import { BelfryError } from '@belfry/engine'
import type { FastifyRequest } from 'fastify'

/** Deeper than any payload may be (100) inside a batch of jobs; a walk over the value must not use up the stack. */
const MAX_DEPTH = 110
/** A list or object of one byte takes a hundred in memory: a large body of nothing else must not use that up. */
const MAX_CONTAINERS = 500_000
const [BRACKET, BRACE] = [0x5b, 0x7b]

/** A body of JSON as it should be: UTF-8, no key twice, not nested without end. Nothing at all is `undefined`. */
export function parseJsonBody(
  request: FastifyRequest,
  body: Buffer,
  done: (error: Error | null, value?: unknown) => void,
): void {
  try {
    checkCharset(request.headers['content-type'] ?? '')
    done(null, parseJson(body))
  } catch (error) {
    done(error as Error)
  }
}

function parseJson(body: Buffer): unknown {
  if (body.length === 0) return undefined
  if (!isUtf8(body)) throw notJson('it is not UTF-8')
  if (body.length > MAX_CONTAINERS && isCrowded(body))
    throw tooMuch(`has more than ${MAX_CONTAINERS} lists and objects`)
  const text = body.toString()
  const value = parse(text)
  // JSON.parse keeps the last of several equal keys. What a reader of the request saw first would then not be what is
  // done, so the keys that were written are counted against those that are there.
  if (countKeys(value, 1) !== countWrittenKeys(text)) throw notJson('an object has the same key twice')
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // V8 quotes the text around the fault, which helps whoever wrote it and shows nothing that they did not send.
    throw notJson(error instanceof Error ? error.message : 'it cannot be parsed')
  }
}

function checkCharset(contentType: string): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1]
  if (charset === undefined || /^(?:utf-?8|us-ascii)$/i.test(charset)) return
  throw new BelfryError('unsupported_media_type', 'JSON is UTF-8; leave the charset away')
}

/** Those within texts count, too: it is a bound, and no batch of jobs comes near it. */
function isCrowded(body: Buffer): boolean {
  let count = 0
  for (const byte of [BRACKET, BRACE]) {
    for (let at = body.indexOf(byte); at !== -1; at = body.indexOf(byte, at + 1)) {
      if (++count > MAX_CONTAINERS) return true
    }
  }
  return false
}

function countKeys(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null) return 0
  if (depth > MAX_DEPTH) throw tooMuch(`is nested deeper than ${MAX_DEPTH} levels`)
  let count = 0
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) count += countKeys(value[i], depth + 1)
    return count
  }
  for (const key in value) count += 1 + countKeys((value as Record<string, unknown>)[key], depth + 1)
  return count
}

/** Texts that stand before a colon. The text is known to be JSON, so jumping from quote to quote is enough. */
function countWrittenKeys(text: string): number {
  let count = 0
  for (let at = text.indexOf('"'); at !== -1; ) {
    let end = text.indexOf('"', at + 1)
    while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
    let next = end + 1
    while (isSpace(text.charCodeAt(next))) next++
    if (text.charCodeAt(next) === COLON) count++
    at = text.indexOf('"', next)
  }
  return count
}

const COLON = 58
const BACKSLASH = 92

function isEscaped(text: string, quote: number): boolean {
  let at = quote - 1
  while (text.charCodeAt(at) === BACKSLASH) at--
  return (quote - at) % 2 === 0
}

const isSpace = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9

const notJson = (why: string): BelfryError => new BelfryError('invalid_json', `the body is not JSON: ${why}`)

const tooMuch = (message: string): BelfryError =>
  new BelfryError('invalid_request', `the body ${message}`, { complaints: [{ path: '', message }] })
