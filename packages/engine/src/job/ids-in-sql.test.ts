import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDatabase, type TestDatabase } from '../../test/database.ts'
import { systemRandom } from '../runtime/random.ts'
import { hash64, jobIdLowerBound, newJobId, shardOfKey } from './ids.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase({ migrations: [] })
})
afterAll(() => database.drop())

const texts = [
  '',
  'abc',
  'Grüße',
  '日本語',
  '🎉',
  'a'.repeat(1_000),
  "quote ' and \\ backslash",
  '{"cron":"* * * * *"}',
]

test('hash64 is the same number in SQL', async () => {
  const rows = await database.query<{ hash: string }>(
    `select (('x' || encode(substr(sha256(convert_to(t, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint)::text as hash
       from unnest($1::text[]) with ordinality as u(t, n) order by n`,
    [texts],
  )
  expect(rows.map((row) => row.hash)).toEqual(texts.map(hash64))
})

test('shardOfKey is the same shard in SQL', async () => {
  const rows = await database.query<{ shard: number }>(
    `select (get_byte(h, 0) * 65536 + get_byte(h, 1) * 256 + get_byte(h, 2)) % 64 as shard
       from unnest($1::text[]) with ordinality as u(t, n), sha256(convert_to(17::int || ':' || t, 'UTF8')) as h order by n`,
    [texts],
  )
  expect(rows.map((row) => row.shard)).toEqual(texts.map((text) => shardOfKey(17, text, 64)))
})

test('PostgreSQL reads an id as a uuid, writes it back the same and sorts it the same', async () => {
  const ids = [1, 5_000, 1_800_000_000_000, 1_800_000_000_001].flatMap((now) => [
    jobIdLowerBound(now),
    newJobId(0, now, systemRandom),
    newJobId(4095, now, systemRandom),
  ])
  const rows = await database.query<{ id: string }>(
    'select id::text as id from unnest($1::uuid[]) as u(id) order by u.id',
    [ids],
  )
  expect(rows.map((row) => row.id)).toEqual(ids)
})
