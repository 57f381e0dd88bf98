import type { Instant } from '../runtime/clock.ts'

/**
 * Array parameters, written by hand: `pg` quotes and escapes every element, which costs more than PostgreSQL's work on a
 * batch. Instants travel as float8 milliseconds (exact far beyond the year 9999) and become timestamps in the statement.
 */
export const numbers = (values: readonly (number | string | null)[]): string => {
  const text = values.join(',')
  // `join` writes nothing for null.
  return values.includes(null) ? `{${values.map((value) => value ?? 'null').join(',')}}` : `{${text}}`
}

export const ids = (values: readonly string[]): string => `{${values.join(',')}}`

/** Where rows lie, as the database said it. */
export const places = (rows: readonly { place: string }[]): string =>
  `{${rows.map(({ place }) => `"${place}"`).join(',')}}`

export const instants = (values: readonly (Instant | null)[]): string => numbers(values)

export const booleans = (values: readonly boolean[]): string =>
  `{${values.map((value) => (value ? 't' : 'f')).join(',')}}`

export const texts = (values: readonly (string | null)[]): string => {
  let text = '{'
  for (let i = 0; i < values.length; i++) {
    const value = values[i]
    text += i === 0 ? '' : ','
    text += value === null || value === undefined ? 'null' : `"${value.replace(/["\\]/g, '\\$&')}"`
  }
  return `${text}}`
}

/** PostgreSQL's text cannot hold NUL: whatever comes from outside and was not checked at the door is cleaned of it. */
export const withoutNul = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\u{FFFD}') : text)
