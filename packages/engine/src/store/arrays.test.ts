import fc from 'fast-check'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { type ArrayValues, arrayTypesOf, encoded } from './arrays.ts'

async function connect() {
  const client = new pg.Client(inject('postgres'))
  await client.connect()
  onTestFinished(() => client.end())
  /** What PostgreSQL understands of an array, element by element, as text. */
  return async (type: string, values: ArrayValues): Promise<(string | null)[]> => {
    const text = `select u.one::text from unnest($1::${type}[]) with ordinality as u (one, place) order by u.place`
    const { rows } = await client.query({ text, values: encoded(arrayTypesOf(text), [values]), rowMode: 'array' })
    return rows.map(([one]) => one)
  }
}

const orNull = <Value>(value: fc.Arbitrary<Value>) => fc.array(fc.option(value, { freq: 4 }), { maxLength: 30 })
const asText = (values: ArrayValues): (string | null)[] => values.map((value) => (value == null ? null : String(value)))

test('whatever is put into an array arrives as it is', async () => {
  const read = await connect()
  const kinds: [type: string, values: fc.Arbitrary<ArrayValues>][] = [
    ['smallint', orNull(fc.integer({ min: -32_768, max: 32_767 }))],
    ['int', orNull(fc.integer())],
    ['bigint', orNull(fc.maxSafeInteger())],
    ['bigint', orNull(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String))],
    ['float8', orNull(fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 }))],
    ['boolean', orNull(fc.boolean())],
    ['uuid', orNull(fc.uuid())],
    ['text', orNull(fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0')))],
    ['tid', orNull(fc.tuple(fc.nat(0xffff_fffe), fc.nat(0xffff)).map(([block, offset]) => `(${block},${offset})`))],
  ]
  for (const [type, values] of kinds) {
    await fc.assert(
      fc.asyncProperty(values, async (array) => {
        const expected = type === 'float8' ? array.map((one) => one ?? null) : asText(array)
        const found = await read(type, array)
        expect(type === 'float8' ? found.map((one) => (one === null ? null : Number(one))) : found).toEqual(expected)
      }),
      { numRuns: 40 },
    )
  }
})

test('what an array cannot hold is refused, not cut off', () => {
  const into = (type: string, value: number | string) => () => encoded(arrayTypesOf(`$1::${type}[]`), [[value]])
  for (const value of [32_768, -32_769, 1.5, Number.NaN])
    expect(into('smallint', value)).toThrow(`${value} is no smallint`)
  for (const value of [2 ** 31, -(2 ** 31) - 1, 0.5]) expect(into('int', value)).toThrow(`${value} is no int`)
  const big = [2 ** 53, 0.5, '9223372036854775808', '-9223372036854775809', '']
  for (const value of big) expect(into('bigint', value)).toThrow(`${value} is no bigint`)
  const id = '019a0000-0000-7000-8000-00000000000f'
  for (const value of [id.slice(1), `${id}0`, id.replace('f', 'g'), id.replace('f', 'é'), ''])
    expect(into('uuid', value)).toThrow(`${value} is no uuid`)
})

test('the statement says what an array holds, once', () => {
  expect(arrayTypesOf('select $2::int[], $1::text, any($2::int[])')).toEqual([undefined, 'int'])
  expect(() => arrayTypesOf('select $1::int[], $1::bigint[]')).toThrow('$1 has two types')
  expect(() => arrayTypesOf('select $1::money[]')).toThrow('$1::money[] is not known as an array')
  expect(() => encoded([], [[1]])).toThrow('$1 is an array: the statement has to say of what')
})
