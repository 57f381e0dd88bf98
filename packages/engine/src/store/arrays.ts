/**
 * Array parameters, in PostgreSQL's binary form: as text each element would be written here and read there digit by digit, which
 * took a quarter of the database's work on a batch. What an element is follows from the statement, which casts every array
 * (`$1::int[]`). Instants travel as float8 milliseconds (exact far beyond the year 9999) and become timestamps in the statement.
 */
export type ArrayValues = readonly (number | string | boolean | null | undefined)[]

/** What the arrays among a statement's parameters hold, by their place. */
export type ArrayTypes = readonly (ElementType | undefined)[]

type ElementType = keyof typeof ELEMENTS

interface Element {
  oid: number
  /** Null: as many as the text has. */
  fixed: { bytes: number; write(view: DataView, at: number, value: never): void } | null
}

const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const NULL_LENGTH = -1
const TWO_TO_32 = 0x1_0000_0000

const misfit = (type: string, value: unknown): RangeError => new RangeError(`${String(value)} is no ${type}`)

const ELEMENTS = {
  boolean: { oid: 16, fixed: { bytes: 1, write: (view, at, value: boolean) => view.setInt8(at, value ? 1 : 0) } },
  smallint: { oid: 21, fixed: { bytes: 2, write: writeSmallint } },
  int: { oid: 23, fixed: { bytes: 4, write: writeInt } },
  bigint: { oid: 20, fixed: { bytes: 8, write: writeBigint } },
  float8: { oid: 701, fixed: { bytes: 8, write: (view, at, value: number) => view.setFloat64(at, value) } },
  uuid: { oid: 2950, fixed: { bytes: 16, write: writeUuid } },
  tid: { oid: 27, fixed: { bytes: 6, write: writeTid } },
  text: { oid: 25, fixed: null },
} satisfies Record<string, Element>

/** What the arrays of a statement hold, by their casts. */
export function arrayTypesOf(text: string): ArrayTypes {
  const types: (ElementType | undefined)[] = []
  for (const [cast, parameter, type] of text.matchAll(/\$(\d+)::(\w+)\[\]/g)) {
    if (!((type as string) in ELEMENTS)) throw new Error(`${cast} is not known as an array`)
    const place = Number(parameter) - 1
    if (types[place] !== undefined && types[place] !== type) throw new Error(`$${parameter} has two types`)
    types[place] = type as ElementType
  }
  return types
}

/** The parameters as they are sent. */
export const encoded = (types: ArrayTypes, values: readonly unknown[]): unknown[] =>
  values.map((value, place) => {
    if (!Array.isArray(value)) return value
    const type = types[place]
    if (type === undefined) throw new Error(`$${place + 1} is an array: the statement has to say of what`)
    return arrayOf(ELEMENTS[type], value)
  })

function arrayOf({ oid, fixed }: Element, values: ArrayValues): Buffer {
  const size = fixed === null ? bytesOf(values) : fixed.bytes * values.length
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + LENGTH_BYTES * values.length + size)
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
  let at = HEADER_BYTES
  let hasNull = false
  for (const value of values) {
    const start = at + LENGTH_BYTES
    if (value === null || value === undefined) {
      view.setInt32(at, NULL_LENGTH)
      at = start
      hasNull = true
      continue
    }
    const length = fixed === null ? buffer.write(value as string, start) : fixed.bytes
    fixed?.write(view, start, value as never)
    view.setInt32(at, length)
    at = start + length
  }
  // One dimension, which begins at 1.
  view.setInt32(0, 1)
  view.setInt32(4, hasNull ? 1 : 0)
  view.setInt32(8, oid)
  view.setInt32(12, values.length)
  view.setInt32(16, 1)
  return at === buffer.length ? buffer : buffer.subarray(0, at)
}

function bytesOf(values: ArrayValues): number {
  let bytes = 0
  for (const value of values) if (typeof value === 'string') bytes += Buffer.byteLength(value)
  return bytes
}

function writeSmallint(view: DataView, at: number, value: number): void {
  if ((value << 16) >> 16 !== value) throw misfit('smallint', value)
  view.setInt16(at, value)
}

function writeInt(view: DataView, at: number, value: number): void {
  if ((value | 0) !== value) throw misfit('int', value)
  view.setInt32(at, value)
}

/** Ids of holders and keys are texts: they need more than a number holds. */
function writeBigint(view: DataView, at: number, value: number | string): void {
  if (typeof value === 'string') {
    const big = BigInt(value)
    if (BigInt.asIntN(64, big) !== big || value === '') throw misfit('bigint', value)
    view.setBigInt64(at, big)
    return
  }
  if (!Number.isSafeInteger(value)) throw misfit('bigint', value)
  view.setInt32(at, Math.floor(value / TWO_TO_32))
  view.setUint32(at + 4, value >>> 0)
}

/** What a hexadecimal digit stands for, by its character; -1: it is none. */
const DIGIT = Int8Array.from({ length: 128 }, (_, code) => {
  const digit = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(digit) ? -1 : digit
})
const digit = (text: string, at: number): number => DIGIT[text.charCodeAt(at)] ?? -1
/** Negative: not all of them are digits. */
const four = (text: string, at: number): number =>
  (digit(text, at) << 12) | (digit(text, at + 1) << 8) | (digit(text, at + 2) << 4) | digit(text, at + 3)

function writeUuid(view: DataView, at: number, value: string): void {
  const [a, b, c, d] = [four(value, 0), four(value, 4), four(value, 9), four(value, 14)]
  const [e, f, g, h] = [four(value, 19), four(value, 24), four(value, 28), four(value, 32)]
  if (value.length !== 36 || (a | b | c | d | e | f | g | h) < 0) throw misfit('uuid', value)
  view.setInt32(at, (a << 16) | b)
  view.setInt32(at + 4, (c << 16) | d)
  view.setInt32(at + 8, (e << 16) | f)
  view.setInt32(at + 12, (g << 16) | h)
}

/** `(block,offset)`, as the database writes it. */
function writeTid(view: DataView, at: number, value: string): void {
  const comma = value.indexOf(',')
  view.setUint32(at, Number(value.slice(1, comma)))
  view.setUint16(at + 4, Number(value.slice(comma + 1, -1)))
}
