import type { Chance } from './chance.ts'
import { Generator } from './generate.ts'
import {
  almost,
  HOSTILE_BODIES,
  HOSTILE_HEADERS,
  HOSTILE_SEGMENTS,
  HOSTILE_TYPES,
  HOSTILE_VALUES,
  ODD_METHODS,
} from './hostile.ts'
import type { Document, Operation, Parameter } from './openapi.ts'

export interface FuzzRequest {
  operation: Operation
  /** What is wrong with it, in a word. */
  flaw: string
  method: string
  target: string
  bytes: Buffer
  /** The connection is not to be used again: the server may read the rest of the bytes as a request of its own. */
  last: boolean
}

export interface RequestOptions {
  document: Document
  key: string
  /** Something that exists, for a path or query parameter; undefined if the parameter names nothing. */
  known(operation: Operation, name: string): string[] | undefined
  /** Something that exists, for a field of a body. */
  knownInBodies(name: string): readonly string[]
}

interface Draft {
  method: string
  segments: Record<string, string>
  query: [string, string][]
  headers: string[]
  contentType: string
  body: string | Buffer | null
  last: boolean
}

/** Makes requests from what the document says: some valid, some almost, some that no decent client would send. */
export class RequestMaker {
  readonly #options: RequestOptions

  constructor(options: RequestOptions) {
    this.#options = options
  }

  make(operation: Operation, chance: Chance): FuzzRequest {
    const generator = new Generator(this.#options.document, chance, this.#options.knownInBodies)
    const value = operation.body && generator.valid(operation.body.schema)
    const draft = this.#draft(operation, chance, generator, value)
    const roll = chance.float()
    let flaw = 'none'
    if (roll >= 0.35)
      flaw = roll < 0.7 ? spoilValues(operation, draft, value, chance) : spoilForm(operation, draft, chance)
    const target = targetOf(operation, draft)
    return { operation, flaw, method: draft.method, target, bytes: this.#bytes(draft, target), last: draft.last }
  }

  #draft(operation: Operation, chance: Chance, generator: Generator, value: unknown): Draft {
    const of = (place: Parameter['in']) => operation.parameters.filter((one) => one.in === place)
    const fill = ({ name, schema }: Parameter): string => {
      const known = this.#options.known(operation, name)
      if (known && known.length > 0 && chance.happens(0.8)) return chance.pick(known)
      return String(generator.valid(schema))
    }
    return {
      method: operation.method,
      segments: Object.fromEntries(of('path').map((one) => [one.name, encodeURIComponent(fill(one))])),
      query: of('query')
        .filter(({ required, name }) => required || chance.happens(name === 'waitMs' ? 0.02 : 0.3))
        .map((one) => [one.name, encodeURIComponent(one.name === 'waitMs' ? '1' : fill(one).toWellFormed())]),
      headers: [],
      contentType: operation.body?.contentType ?? '',
      body: operation.body === null ? null : textOf(value),
      last: false,
    }
  }

  #bytes({ method, headers, contentType, body }: Draft, target: string): Buffer {
    const lines = [`${method} ${target} HTTP/1.1`, 'Host: belfry.test']
    if (!headers.some((line) => line.startsWith('Authorization')))
      lines.push(`Authorization: Bearer ${this.#options.key}`)
    const bytes = body === null ? null : Buffer.from(body as string)
    if (bytes !== null) {
      if (contentType !== '') lines.push(`Content-Type: ${contentType}`)
      if (!headers.some((line) => /^(content-length|transfer-encoding)/i.test(line)))
        lines.push(`Content-Length: ${bytes.length}`)
    }
    const head = Buffer.from(`${[...lines, ...headers].join('\r\n')}\r\n\r\n`, 'utf8')
    return bytes === null ? head : Buffer.concat([head, bytes])
  }
}

/** Lone surrogates survive only as escapes, which is how a client would send them. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null))

function targetOf({ path }: Operation, { segments, query }: Draft): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => segments[name] ?? '')
  return query.length === 0 ? filled : `${filled}?${query.map(([name, value]) => `${name}=${value}`).join('&')}`
}

function spoilValues(operation: Operation, draft: Draft, value: unknown, chance: Chance): string {
  if (operation.body !== null && chance.happens(0.8)) {
    draft.body = JSON.stringify(almost(value, chance)) ?? ''
    return 'a value in the body'
  }
  const names = operation.parameters.filter((one) => one.in === 'query').map(({ name }) => name)
  if (names.length > 0 && chance.happens(0.6)) {
    const name = chance.pick(names)
    draft.query = [...draft.query.filter(([other]) => other !== name), [name, chance.pick(HOSTILE_VALUES)]]
    return `the query's ${name}`
  }
  const segments = Object.keys(draft.segments)
  if (segments.length > 0 && chance.happens(0.6)) {
    draft.segments[chance.pick(segments)] = chance.pick(HOSTILE_SEGMENTS)
    return 'a path segment'
  }
  draft.query.push([chance.pick(['limitt', 'unknown', '__proto__', 'constructor', 'a[]', 'a[b]', '%00', '']), '1'])
  return 'an unknown parameter'
}

function spoilForm(operation: Operation, draft: Draft, chance: Chance): string {
  const ways = [spoilHeader, spoilMethod, spoilTarget, spoilLength]
  if (operation.body !== null) ways.push(spoilBody, spoilBody, spoilBody, spoilType)
  return chance.pick(ways)(draft, chance)
}

function spoilBody(draft: Draft, chance: Chance): string {
  const name = chance.pick(Object.keys(HOSTILE_BODIES))
  draft.body = (HOSTILE_BODIES[name] as (typeof HOSTILE_BODIES)[string])(String(draft.body), chance)
  return `body: ${name}`
}

function spoilType(draft: Draft, chance: Chance): string {
  draft.contentType = chance.pick(HOSTILE_TYPES)
  return `content type ${draft.contentType.slice(0, 40)}`
}

function spoilHeader(draft: Draft, chance: Chance): string {
  const line = chance.pick(HOSTILE_HEADERS)
  draft.headers.push(line)
  draft.last = true
  return `header ${line.slice(0, 30)}`
}

function spoilMethod(draft: Draft, chance: Chance): string {
  draft.method = chance.pick(ODD_METHODS)
  draft.last = true
  return `method ${draft.method}`
}

function spoilTarget(draft: Draft, chance: Chance): string {
  draft.last = true
  if (chance.happens(0.3)) {
    draft.query.push(['q', 'x'.repeat(chance.pick([3_000, 10_000, 20_000, 60_000]))])
    return 'a long URL'
  }
  for (const name of Object.keys(draft.segments)) draft.segments[name] = chance.pick(HOSTILE_SEGMENTS)
  draft.query.push([chance.pick(['cursor', 'limit', 'status', 'from', 'x']), chance.pick(HOSTILE_VALUES)])
  return 'the URL'
}

/** The announced length is not that of the body: too short, missing or badly chunked; never too long, which only waits. */
function spoilLength(draft: Draft, chance: Chance): string {
  draft.last = true
  draft.body ??= '{"a":1}'
  const [name, line] = chance.pick([
    ['short', 'Content-Length: 1'],
    ['negative', 'Content-Length: -1'],
    ['not a number', 'Content-Length: ten'],
    ['huge', 'Content-Length: 999999999999999999999'],
    ['twice', 'Content-Length: 1\r\nContent-Length: 2'],
    ['both', 'Content-Length: 5\r\nTransfer-Encoding: chunked'],
    ['bad chunks', 'Transfer-Encoding: chunked'],
  ] as const)
  draft.headers.push(line)
  return `length: ${name}`
}
