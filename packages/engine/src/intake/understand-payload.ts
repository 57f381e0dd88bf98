import { type Complaints, isStorable, join, unstorable } from '../input/read-fields.ts'
import { shown } from '../schedule/not-understood.ts'

/** As JSON, in bytes of UTF-8. */
export const MAX_PAYLOAD_BYTES = 262_144
/** The one complaint that has an error code of its own. */
export const TOO_LARGE = `must have at most ${MAX_PAYLOAD_BYTES} bytes as JSON: store it elsewhere and give payloadRef`
const MAX_DEPTH = 100

/**
 * A payload is read in two ways. `isPlainJson` looks over the common case without making anything. Whatever it does not
 * vouch for is gone through by `readPayload`, which makes a copy of plain JSON and says where it cannot.
 */

/** What the walk may still visit. Every value and every character takes a byte of JSON at least, so this is a size, too. */
let budget = 0

export function isPlainJson(value: unknown): boolean {
  budget = MAX_PAYLOAD_BYTES
  return isPlain(value, 0)
}

function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
      budget -= value.length
      return budget >= 0
    case 'number':
      return Number.isFinite(value) && --budget >= 0
    case 'boolean':
      return --budget >= 0
    case 'object':
      return value === null ? --budget >= 0 : isPlainContainer(value, depth + 1)
    default:
      return false
  }
}

function isPlainContainer(value: object, depth: number): boolean {
  if (depth > MAX_DEPTH || --budget < 0) return false
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth)) return false
    return true
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  const record = value as Record<string, unknown>
  for (const key in record) {
    const member = record[key]
    // JSON leaves it out, and so would whoever wrote it.
    if (member !== undefined && !isPlain(member, depth)) return false
  }
  return true
}

/** Whether JSON text may hold what PostgreSQL does not: JSON writes NUL and lone surrogates as escapes. */
export function looksUnstorable(json: string): boolean {
  return json.includes('\\u') && /\\u(?:0000|d[89a-f])/.test(json)
}

type ReadPayload = { payload: unknown; isTooLarge: boolean }

/** A copy of plain JSON; dates and everything else with `toJSON` become what they stand for. */
function readPayload(complaints: Complaints, path: string, value: unknown): ReadPayload {
  const reader = new PayloadReader(complaints)
  return { payload: reader.read(value, path, ''), isTooLarge: reader.left < 0 }
}

/** The copy, or null where it would be too large. */
export function copyPayload(complaints: Complaints, path: string, value: unknown): unknown {
  const { payload, isTooLarge } = readPayload(complaints, path, value)
  if (!isTooLarge) return payload
  complaints.add(path, TOO_LARGE)
  return null
}

export function complainAboutSize(complaints: Complaints, path: string, value: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? '')
  if (bytes > MAX_PAYLOAD_BYTES) complaints.add(path, TOO_LARGE)
}

class PayloadReader {
  readonly #complaints: Complaints
  readonly #ancestors: object[] = []
  left = MAX_PAYLOAD_BYTES

  constructor(complaints: Complaints) {
    this.#complaints = complaints
  }

  read(value: unknown, path: string, key: string): unknown {
    if (this.left < 0 || this.#complaints.isFull) return undefined
    this.left--
    switch (typeof value) {
      case 'string':
        this.left -= value.length
        return isStorable(value) ? value : this.#complaints.add(path, unstorable(value))
      case 'number':
        return Number.isFinite(value) ? value : this.#complaints.add(path, `is ${value}, which JSON cannot hold`)
      case 'boolean':
        return value
      case 'object':
        return value === null ? null : this.#readObject(value, path, key)
      case 'undefined':
        return this.#complaints.add(path, 'is undefined, which JSON cannot hold', 'null')
      case 'bigint':
        return this.#complaints.add(path, 'is a bigint, which JSON cannot hold', JSON.stringify(String(value)))
      default:
        return this.#complaints.add(path, `is a ${typeof value}, which JSON cannot hold`)
    }
  }

  #readObject(value: object, path: string, key: string): unknown {
    if (this.#ancestors.includes(value)) return this.#complaints.add(path, 'contains itself')
    if (this.#ancestors.length >= MAX_DEPTH) {
      return this.#complaints.add(path, `is nested deeper than ${MAX_DEPTH} levels`)
    }
    this.#ancestors.push(value)
    const copy = this.#copy(value, path, key)
    this.#ancestors.pop()
    return copy
  }

  #copy(value: object, path: string, key: string): unknown {
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      if (value instanceof Date && Number.isNaN(value.getTime()))
        return this.#complaints.add(path, 'is an invalid Date')
      return this.read(value.toJSON(key), path, key)
    }
    if (Array.isArray(value)) return this.#copyList(value, path)
    const kind = Object.prototype.toString.call(value).slice(8, -1)
    // A Map, an Error or a typed array would become {} or worse, without a word.
    if (kind !== 'Object') return this.#complaints.add(path, `is of type ${shown(kind)}, which JSON cannot hold`)
    return this.#copyRecord(value as Record<string, unknown>, path)
  }

  #copyList(list: unknown[], path: string): unknown[] {
    const copy: unknown[] = []
    for (let i = 0; i < list.length && this.left >= 0; i++) copy.push(this.read(list[i], `${path}[${i}]`, String(i)))
    return copy
  }

  #copyRecord(record: Record<string, unknown>, path: string): Record<string, unknown> {
    const members: [string, unknown][] = []
    for (const key of Object.keys(record)) {
      const member = record[key]
      if (member === undefined) continue
      this.left -= key.length
      if (!isStorable(key)) {
        this.#complaints.add(join(path, key), `has a name that ${unstorable(key)}`)
        continue
      }
      members.push([key, this.read(member, join(path, key), key)])
      if (this.left < 0) break
    }
    return Object.fromEntries(members)
  }
}
