import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDatabase, type TestDatabase } from '../../test/database.ts'
import { BelfryError } from '../errors.ts'
import { understandJob } from './understand-job.ts'

const now = Date.UTC(2026, 0, 15, 10)
let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase({ migrations: [] })
})
afterAll(() => database.drop())

/** Every UTF-16 unit, paired or not, with the awkward ones often. */
const unit = fc.oneof(
  fc.constantFrom('\0', '\ud83d', '\udc00', '🎉', '\\u0000', '\\', '"', '\u0001'),
  fc.string({ maxLength: 3 }),
)
const text = fc.array(unit, { maxLength: 6 }).map((units) => units.join(''))
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.double(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(text, tie('json'), { maxKeys: 4 }),
  ),
}))

test('whatever is accepted can be stored, and comes back the same', async () => {
  const accepted: string[] = []
  let refused = 0
  fc.assert(
    fc.property(
      json,
      fc.option(text),
      fc.option(fc.dictionary(text, text, { maxKeys: 3 })),
      (payload, name, labels) => {
        const input = { payload, ...(name === null ? {} : { name }), ...(labels === null ? {} : { labels }) }
        try {
          accepted.push(understandJob(input, { now }).definitionJson)
        } catch (error) {
          expect(error).toBeInstanceOf(BelfryError)
          refused++
        }
      },
    ),
    { numRuns: 3_000 },
  )
  // Both kinds were tried, or the test would say nothing.
  expect(accepted.length).toBeGreaterThan(300)
  expect(refused).toBeGreaterThan(300)
  const rows = await database.query<{ definition: unknown }>(
    'select t::jsonb as definition from unnest($1::text[]) with ordinality as u(t, n) order by n',
    [accepted],
  )
  expect(rows.length).toBe(accepted.length)
  for (const [index, row] of rows.entries()) expect(row.definition).toEqual(JSON.parse(accepted[index] as string))
})
