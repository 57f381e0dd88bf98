import { expect, test } from 'vitest'
import { BelfryError } from '../../src/errors.ts'
import { readWhen } from '../../src/schedule/english/read-when.ts'
import { cellsOf, type Row, rowsOf } from './phrase-table.ts'

const phrases = rowsOf('phrases.txt')
const refusals = rowsOf('refusals.txt')

function refusalOf({ phrase, ...at }: Pick<Row, 'phrase' | 'now' | 'timezone'>): BelfryError {
  try {
    readWhen(phrase, at)
  } catch (error) {
    if (error instanceof BelfryError) return error
    throw error
  }
  throw new Error(`${phrase} is understood`)
}

test('each phrase of the table means its expression and fires at its times', () => {
  expect(phrases.length).toBeGreaterThanOrEqual(200)
  const understood = phrases.map((row) => [row.phrase, ...cellsOf(readWhen(row.phrase, row), row)].join(' | '))
  expect(understood).toEqual(phrases.map(({ phrase, cells }) => [phrase, ...cells].join(' | ')))
})

test('capitals, spaces and commas change nothing', () => {
  for (const row of phrases) {
    const loud = row.phrase.toUpperCase().replaceAll(' ', '  ')
    expect(readWhen(` ${loud} `, row), loud).toEqual(readWhen(row.phrase, row))
  }
})

test('what is refused names the word, its place, a reason and the right text where one is near', () => {
  expect(refusals.length).toBeGreaterThanOrEqual(60)
  for (const row of refusals) {
    const [named = '', reason = '', suggestion] = row.cells
    const { message, code, complaints } = refusalOf(row)
    expect(code, row.phrase).toBe('invalid_argument')
    const [, word, character] = /^(.*) at (\d+)$/.exec(named) ?? []
    if (word !== undefined) expect(message).toContain(`${JSON.stringify(word)} at character ${character} `)
    expect(message).toContain(reason)
    expect(complaints[0]?.suggestion, row.phrase).toBe(suggestion)
  }
})

/** Each phrase with one letter of each word gone. */
function* slipsOf(phrase: string): Generator<string> {
  for (const { index, 0: word } of phrase.matchAll(/[a-z]{3,}/gi)) {
    const gone = index + Math.floor(word.length / 2)
    yield phrase.slice(0, gone) + phrase.slice(gone + 1)
  }
}

test('whatever is suggested would be understood', () => {
  const slips = phrases.flatMap((row) => [...slipsOf(row.phrase)].map((phrase) => ({ ...row, phrase })))
  const suggested = [...slips, ...refusals].flatMap((row) => {
    const suggestion = suggestionFor(row)
    return suggestion === undefined ? [] : [{ ...row, suggestion }]
  })
  expect(suggested.length).toBeGreaterThan(500)
  for (const { suggestion, ...row } of suggested) expect(() => readWhen(suggestion, row), suggestion).not.toThrow()
})

function suggestionFor({ phrase, ...at }: Row): string | undefined {
  try {
    readWhen(phrase, at)
    return undefined
  } catch (error) {
    return (error as BelfryError).complaints[0]?.suggestion
  }
}

test.each([
  ['', 'must not be empty'],
  ['   ', 'must not be empty'],
  ['.', 'must not be empty'],
  [undefined, 'must be a text such as "every weekday at 9am"'],
  [9, 'must be a text such as "every weekday at 9am"'],
  [['every day'], 'must be a text such as "every weekday at 9am"'],
])('%j is refused', (text, message) => {
  expect(() => readWhen(text, { now: 0, timezone: 'UTC' })).toThrow(message)
})

test('a text of more than 200 characters is refused unread', () => {
  const text = `every day at ${'9, '.repeat(80)}`
  const read = () => readWhen(text, { now: 0, timezone: 'UTC' })
  expect(read).toThrow('must have at most 200 characters, not 253')
})

test('a zone that does not exist is refused before the text is read', () => {
  expect(() => readWhen('every day', { now: 0, timezone: 'Berlin' })).toThrow('there is no time zone "Berlin"')
})
