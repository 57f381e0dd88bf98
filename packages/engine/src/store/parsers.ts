import type { Instant } from '../runtime/clock.ts'

const OID = { bool: 16, int2: 21, int4: 23, float8: 701, timestamptz: 1184 } as const

const digit = (text: string, at: number): number => text.charCodeAt(at) - 48
const two = (text: string, at: number): number => digit(text, at) * 10 + digit(text, at + 1)

/** Reads `2026-11-15 02:43:47.123+00` (the engine's connections speak UTC) without a regular expression or a Date. */
function parseInstant(text: string): Instant {
  if (text.length < 22 || text.charCodeAt(4) !== 45) return parseUnusual(text)
  const year = two(text, 0) * 100 + two(text, 2)
  const seconds = Date.UTC(year, two(text, 5) - 1, two(text, 8), two(text, 11), two(text, 14), two(text, 17))
  if (text.charCodeAt(19) !== 46) return text.endsWith('+00') ? seconds : parseUnusual(text)
  let ms = 0
  let at = 20
  for (let scale = 100; scale >= 1 && text.charCodeAt(at) >= 48 && text.charCodeAt(at) <= 57; scale /= 10) {
    ms += digit(text, at) * scale
    at++
  }
  return text.endsWith('+00') ? seconds + ms : parseUnusual(text)
}

function parseUnusual(text: string): Instant {
  if (text === 'infinity') return Number.POSITIVE_INFINITY
  if (text === '-infinity') return Number.NEGATIVE_INFINITY
  return Date.parse(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'))
}

/** bigint, json, uuid and text stay text: ids and holders are compared, definitions are parsed where they are needed. */
export const typeParsers = {
  getTypeParser(oid: number): (text: string) => unknown {
    if (oid === OID.timestamptz) return parseInstant
    if (oid === OID.int2 || oid === OID.int4 || oid === OID.float8) return Number
    if (oid === OID.bool) return (text) => text === 't'
    return (text) => text
  },
}
