/**
 * Array parameters, in PostgreSQL's binary form: as text each element would be written here and read there digit by digit, which
 * took a quarter of the database's work on a batch. What an element is follows from the statement, which casts every array
 * (`$1::int[]`). Instants travel as float8 milliseconds (exact far beyond the year 9999) and become timestamps in the statement.
 */
export type ArrayValues = readonly (number | string | boolean | null | undefined)[]

/** By the place of the parameter. */
export type ArrayTypes = readonly (ElementType | undefined)[]

export type ElementType = keyof typeof ELEMENTS

/** The same bytes twice: numbers are written quickest through a view, texts through the buffer. */
interface Target {
  buffer: Buffer
  view: DataView
}

interface Element {
  oid: number
  /** Null: as many as the text has. */
  bytes: number | null
  /** Answers where it ends. */
  write(target: Target, at: number, value: never): number
}

const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const NULL_LENGTH = -1
const TWO_TO_32 = 0x1_0000_0000

const misfit = (type: string, value: unknown): RangeError => new RangeError(`${String(value)} is no ${type}`)

const ELEMENTS = {
  boolean: {
    oid: 16,
    bytes: 1,
    write({ view }, at, value: boolean) {
      view.setInt8(at, value ? 1 : 0)
      return at + 1
    },
  },
  smallint: {
    oid: 21,
    bytes: 2,
    write({ view }, at, value: number) {
      if ((value << 16) >> 16 !== value) throw misfit('smallint', value)
      view.setInt16(at, value)
      return at + 2
    },
  },
  int: {
    oid: 23,
    bytes: 4,
    write({ view }, at, value: number) {
      if ((value | 0) !== value) throw misfit('int', value)
      view.setInt32(at, value)
      return at + 4
    },
  },
  bigint: {
    oid: 20,
    bytes: 8,
    write({ view }, at, value: number | string) {
      if (typeof value === 'string') {
        view.setBigInt64(at, BigInt(value))
      } else {
        if (!Number.isSafeInteger(value)) throw misfit('bigint', value)
        view.setInt32(at, Math.floor(value / TWO_TO_32))
        view.setUint32(at + 4, value >>> 0)
      }
      return at + 8
    },
  },
  float8: {
    oid: 701,
    bytes: 8,
    write({ view }, at, value: number) {
      view.setFloat64(at, value)
      return at + 8
    },
  },
  uuid: {
    oid: 2950,
    bytes: 16,
    write({ view }, at, value: string) {
      view.setInt32(at, (four(value, 0) << 16) | four(value, 4))
      view.setInt32(at + 4, (four(value, 9) << 16) | four(value, 14))
      view.setInt32(at + 8, (four(value, 19) << 16) | four(value, 24))
      view.setInt32(at + 12, (four(value, 28) << 16) | four(value, 32))
      return at + 16
    },
  },
  tid: {
    oid: 27,
    bytes: 6,
    /** `(block,offset)`, as the database writes it. */
    write({ view }, at, value: string) {
      const comma = value.indexOf(',')
      view.setUint32(at, Number(value.slice(1, comma)))
      view.setUint16(at + 4, Number(value.slice(comma + 1, -1)))
      return at + 6
    },
  },
  text: {
    oid: 25,
    bytes: null,
    write: ({ buffer }, at, value: string) => at + buffer.write(value, at),
  },
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

function arrayOf({ oid, bytes, write }: Element, values: ArrayValues): Buffer {
  const size = bytes === null ? bytesOf(values) : bytes * values.length
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + LENGTH_BYTES * values.length + size)
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
  const target = { buffer, view }
  let at = HEADER_BYTES
  let hasNull = false
  for (const value of values) {
    const start = at + LENGTH_BYTES
    if (value === null || value === undefined) {
      view.setInt32(at, NULL_LENGTH)
      at = start
      hasNull = true
    } else {
      const end = write(target, start, value as never)
      view.setInt32(at, end - start)
      at = end
    }
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

/** What a hexadecimal digit stands for, by its character. */
const DIGIT = Uint8Array.from({ length: 128 }, (_, code) => Number.parseInt(String.fromCharCode(code), 16) || 0)
const digit = (text: string, at: number): number => DIGIT[text.charCodeAt(at)] as number
const four = (text: string, at: number): number =>
  (digit(text, at) << 12) | (digit(text, at + 1) << 8) | (digit(text, at + 2) << 4) | digit(text, at + 3)

export const places = (rows: readonly { place: string }[]): string[] => rows.map(({ place }) => place)

/** PostgreSQL's text cannot hold NUL: whatever comes from outside and was not checked at the door is cleaned of it. */
export const withoutNul = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\u{FFFD}') : text)
