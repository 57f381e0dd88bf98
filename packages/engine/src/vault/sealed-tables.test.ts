import { randomBytes } from 'node:crypto'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, NODE_DAYS } from '../../test/database.ts'
import { listChanges } from '../audit/list-changes.sql.ts'
import { Partitioner } from '../history/partitioner.ts'
import { newJobId } from '../job/ids.ts'
import { Admin } from '../node/admin.ts'
import { ManualClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { systemRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'
import { keyFromMeta, openVault } from './encryption-key.sql.ts'
import { announceUses } from './payload-uses.sql.ts'
import { Payloads } from './payloads.sql.ts'
import { Secrets } from './secrets.sql.ts'
import { SigningKeys } from './signing-keys.sql.ts'
import { Vault } from './vault.ts'

const SECOND = 1_000
const DAY = 86_400_000
const LIMIT = 10 * 1024 * 1024

async function setup() {
  const tables = await createDatabase({ days: NODE_DAYS })
  const database = () => new Database({ connection: inject('postgres'), schema: tables.schema, logger: silentLogger })
  const db = database()
  const other = database()
  const clock = new ManualClock()
  await new Partitioner({ db, clock, logger: silentLogger }).ensure()
  onTestFinished(async () => {
    await db.close()
    await other.close()
    await tables.drop()
  })
  const deps = { db, clock, random: systemRandom, vault: new Vault(randomBytes(32)), shards: 4 }
  const payloadsOf = (limit: number) => new Payloads({ ...deps, limitOf: async () => limit })
  return {
    ...tables,
    db,
    clock,
    deps,
    secrets: new Secrets(deps),
    /** The same as another node sees them. */
    secretsElsewhere: new Secrets({ ...deps, db: other }),
    payloads: payloadsOf(LIMIT),
    payloadsOf,
    signingKeys: new SigningKeys(deps),
    admin: new Admin({ ...deps, refresh: async () => {} }),
  }
}

/** Every column of every table, as text and as bytes. */
async function dump(query: (text: string) => Promise<Record<string, unknown>[]>, schema: string): Promise<Buffer> {
  const columns = await query(
    `select table_name as t, column_name as c, data_type as d from information_schema.columns where table_schema = '${schema}'`,
  )
  const found: Buffer[] = []
  for (const { t, c, d } of columns) {
    const column = d === 'bytea' ? `"${c}"` : `convert_to("${c}"::text, 'UTF8')`
    const rows = await query(`select ${column} as value from "${t}" where "${c}" is not null`)
    found.push(...rows.map(({ value }) => value as Buffer))
  }
  return Buffer.concat(found)
}

test('no secret, payload, signing key or API key stands in clear in any table', async () => {
  const t = await setup()
  await t.secrets.put(1, 'stripe', 'sk_live_verysecret', 'bk_tester1')
  await t.secrets.put(1, 'stripe', 'sk_live_evenmoresecret', 'bk_tester1')
  await t.secrets.delete(1, 'stripe', 'bk_tester1')
  await t.secrets.put(1, 'other', 'othersecret', 'bk_tester1')
  await t.payloads.put(1, Buffer.from('{"card": "4111 1111 1111 1111"}'), 'application/json')
  const signing = await t.signingKeys.rotate(1, SECOND, 'bk_tester1')
  const first = await t.admin.apiKeys.create({ tenantId: 1, name: 'ci', scopes: ['read'] }, 'bk_tester1')
  const second = await t.admin.apiKeys.rotate(first.id, { overlapMs: 0 }, 'bk_tester1')
  const everything = await dump(t.query, t.schema)
  // What may be seen is there: so the search would find the rest.
  for (const seen of ['stripe', first.prefix, 'application/json', 'bk_tester1'])
    expect(everything.includes(seen)).toBe(true)
  const bytes = Buffer.from(signing.secret.replace('whsec_', ''), 'base64')
  // Each is long: four digits would stand by chance in some random id.
  const hidden = [
    'verysecret',
    'evenmoresecret',
    'othersecret',
    '4111 1111 1111 1111',
    signing.secret.slice(6),
    bytes,
    bytes.toString('hex'),
  ]
  for (const { key } of [first, second]) hidden.push(key, key.slice(12), Buffer.from(key).toString('hex'))
  for (const text of hidden) expect(everything.includes(text), String(text)).toBe(false)
})

test('a secret is resolved, listed without its value, replaced, and gone when deleted; the second delete finds none', async () => {
  const t = await setup()
  await t.secrets.put(1, 'a', 'one', 'me')
  await t.secrets.put(1, 'b', 'two', 'me')
  expect(await t.secrets.resolve(1, ['a', 'b', 'c', 'a'])).toEqual(
    new Map([
      ['a', 'one'],
      ['b', 'two'],
    ]),
  )
  expect(await t.secrets.list(1)).toEqual([
    { name: 'a', updatedAt: new Date(t.clock.now()) },
    { name: 'b', updatedAt: new Date(t.clock.now()) },
  ])
  await t.secrets.put(1, 'a', 'three', 'me')
  expect((await t.secrets.resolve(1, ['a'])).get('a')).toBe('three')
  expect(await t.secrets.delete(1, 'a', 'me')).toBe(true)
  expect(await t.secrets.delete(1, 'a', 'me')).toBe(false)
  expect((await t.secrets.resolve(1, ['a'])).size).toBe(0)
  const { items } = await listChanges(t.db, { tenantId: 1, subject: 'secret', subjectId: 'a' })
  expect(items.map(({ action, actor, before, after }) => [action, actor, before, after])).toEqual([
    ['create', 'me', null, null],
    ['update', 'me', null, null],
    ['delete', 'me', null, null],
  ])
})

test('another node sees a changed secret within five seconds', async () => {
  const t = await setup()
  await t.secrets.put(1, 'a', 'one', 'me')
  expect((await t.secretsElsewhere.resolve(1, ['a'])).get('a')).toBe('one')
  await t.secrets.put(1, 'a', 'two', 'me')
  t.clock.advance(5 * SECOND)
  expect((await t.secretsElsewhere.resolve(1, ['a'])).get('a')).toBe('two')
})

test("a secret is of its tenant: another's has the same name, and a copied row cannot be opened", async () => {
  const t = await setup()
  await t.secrets.put(1, 'a', 'mine', 'me')
  await t.secrets.put(2, 'a', 'yours', 'you')
  expect((await t.secrets.resolve(1, ['a'])).get('a')).toBe('mine')
  expect((await t.secrets.resolve(3, ['a'])).size).toBe(0)
  await t.query('update secrets set sealed = (select sealed from secrets where tenant_id = 1) where tenant_id = 2')
  await expect(t.secretsElsewhere.resolve(2, ['a'])).rejects.toMatchObject({ code: 'cannot_decrypt' })
})

test('hostile names and values of secrets are refused or found missing, never an error of the database', async () => {
  const t = await setup()
  const names = [
    '',
    ' ',
    'a b',
    "a'; drop table secrets; --",
    'a\0b',
    'ä',
    '{{secret:a}}',
    'x'.repeat(129),
    '\ud800',
    7,
    null,
    {},
  ]
  for (const name of names as string[]) {
    await expect(t.secrets.put(1, name, 'v', 'me'), String(name)).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(await t.secrets.delete(1, name, 'me')).toBe(false)
    expect((await t.secrets.resolve(1, [name])).size).toBe(0)
  }
  for (const value of ['', 'x'.repeat(65_537), 'a\0b', '\ud800', 7, null] as string[]) {
    await expect(t.secrets.put(1, 'a', value, 'me')).rejects.toMatchObject({ code: 'invalid_argument' })
  }
  await t.secrets.put(1, '__proto__', 'odd', 'me')
  expect((await t.secrets.resolve(1, ['__proto__', 'constructor'])).get('__proto__')).toBe('odd')
})

test('a tenant may have a thousand secrets, and still replace them', async () => {
  const t = await setup()
  await t.query(`insert into secrets select now(), 1, 's' || n, '' from generate_series(1, 1000) n`)
  await expect(t.secrets.put(1, 'more', 'v', 'me')).rejects.toMatchObject({ code: 'quota_exceeded' })
  await t.secrets.put(1, 's1', 'v', 'me')
  await t.secrets.put(2, 'more', 'v', 'me')
})

test('a payload comes back as it was, to its tenant alone, until it is deleted', async () => {
  const t = await setup()
  const bytes = randomBytes(100_000)
  const put = await t.payloads.put(1, bytes, 'image/png')
  expect(put).toEqual({
    payloadRef: expect.stringMatching(/^pl_[0-9a-f]{32}$/),
    size: 100_000,
    expiresAt: new Date(t.clock.now() + 30 * DAY),
  })
  expect(await t.payloads.get(1, put.payloadRef)).toEqual({
    bytes,
    contentType: 'image/png',
    size: 100_000,
    expiresAt: put.expiresAt,
  })
  expect(await t.payloads.get(2, put.payloadRef)).toBeNull()
  expect(await t.payloads.delete(2, put.payloadRef)).toBe(false)
  const use = { payloadRef: put.payloadRef, jobId: newJobId(1, t.clock.now(), systemRandom), at: t.clock.now() }
  expect(await announceUses(t.db.bulk, [{ ...use, tenantId: 1 }])).toEqual([])
  expect(await announceUses(t.db.bulk, [{ ...use, tenantId: 2 }])).toEqual([{ ...use, tenantId: 2 }])
  expect(await t.payloads.delete(1, put.payloadRef)).toBe(true)
  expect(await t.payloads.delete(1, put.payloadRef)).toBe(false)
  expect(await t.payloads.get(1, put.payloadRef)).toBeNull()
})

test('an empty payload is one, one that is too large is refused, and so is a content type that cannot be a header', async () => {
  const t = await setup()
  const { payloadRef } = await t.payloads.put(1, Buffer.alloc(0), 'text/plain')
  expect((await t.payloads.get(1, payloadRef))?.bytes.length).toBe(0)
  const small = t.payloadsOf(10)
  await small.put(1, Buffer.alloc(10), 'text/plain')
  await expect(small.put(1, Buffer.alloc(11), 'text/plain')).rejects.toMatchObject({ code: 'payload_too_large' })
  for (const type of ['', 'a\r\nb: c', 'a\0', 'ä', 'x'.repeat(256)]) {
    await expect(t.payloads.put(1, Buffer.alloc(1), type)).rejects.toMatchObject({ code: 'invalid_argument' })
  }
})

test('references that are none are simply not found', async () => {
  const t = await setup()
  const { payloadRef } = await t.payloads.put(1, Buffer.alloc(1), 'text/plain')
  const others = [
    '',
    'pl_',
    payloadRef.toUpperCase(),
    payloadRef.slice(3),
    `${payloadRef}0`,
    `pl_${'f'.repeat(32)}`,
    "pl_' or 1=1",
    7,
    null,
  ]
  for (const ref of others as string[]) {
    expect(await t.payloads.get(1, ref)).toBeNull()
    expect(await t.payloads.delete(1, ref)).toBe(false)
  }
  expect(await t.payloads.get(1, payloadRef)).not.toBeNull()
})

test('a payload goes 30 days after its last use, or after the use that was announced', async () => {
  const t = await setup()
  const [unused, used, announced] = await Promise.all(
    [1, 2, 3].map((n) => t.payloads.put(1, Buffer.from([n]), 'text/plain')),
  )
  const jobId = newJobId(1, t.clock.now(), systemRandom)
  const use = { tenantId: 1, payloadRef: announced?.payloadRef ?? '', jobId }
  expect(await announceUses(t.db.bulk, [{ ...use, at: t.clock.now() + 90 * DAY }])).toEqual([])
  // An earlier use takes nothing back.
  expect(await announceUses(t.db.bulk, [{ ...use, at: t.clock.now() }])).toEqual([])
  t.clock.advance(20 * DAY)
  const read = await t.payloads.get(1, used?.payloadRef ?? '')
  expect(read?.expiresAt).toEqual(new Date(t.clock.now() + 30 * DAY))
  t.clock.advance(10 * DAY)
  expect(await t.payloads.purge(t.clock.now())).toBe(0)
  t.clock.advance(DAY + 1)
  expect(await t.payloads.purge(t.clock.now())).toBe(1)
  expect(await t.payloads.get(1, unused?.payloadRef ?? '')).toBeNull()
  t.clock.advance(30 * DAY)
  expect(await t.payloads.purge(t.clock.now())).toBe(1)
  t.clock.advance(30 * DAY)
  expect(await t.payloads.purge(t.clock.now())).toBe(0)
  expect(await t.payloads.get(1, announced?.payloadRef ?? '')).not.toBeNull()
})

test('reading a payload writes at most once a day', async () => {
  const t = await setup()
  const { payloadRef } = await t.payloads.put(1, Buffer.alloc(1), 'text/plain')
  const usedAt = async () => (await t.query<{ at: Date }>('select used_at as at from payloads'))[0]?.at.getTime()
  const first = t.clock.now()
  t.clock.advance(DAY - 1)
  await t.payloads.get(1, payloadRef)
  expect(await usedAt()).toBe(first)
  t.clock.advance(1)
  await t.payloads.get(1, payloadRef)
  expect(await usedAt()).toBe(t.clock.now())
})

test('a signing key is made when there is none, once for all who ask at the same time', async () => {
  const t = await setup()
  const asked = await Promise.all(Array.from({ length: 4 }, () => new SigningKeys(t.deps).current(1)))
  for (const keys of asked) expect(keys).toEqual(asked[0])
  expect(asked[0]).toHaveLength(1)
  const [listed] = await t.signingKeys.list(1)
  expect(listed?.secret).toBe(`whsec_${asked[0]?.[0]?.secret.toString('base64')}`)
  await expect(t.signingKeys.current(77)).rejects.toMatchObject({ code: 'not_found' })
})

test('after a rotation both keys sign, the new one first, until the overlap is over', async () => {
  const t = await setup()
  const [old] = await t.signingKeys.current(1)
  t.clock.advance(SECOND)
  const made = await t.signingKeys.rotate(1, 60 * SECOND, 'me')
  expect((await t.signingKeys.current(1)).map(({ id }) => id)).toEqual([made.id, old?.id])
  expect((await t.signingKeys.list(1)).map(({ expiresAt }) => expiresAt)).toEqual([
    null,
    new Date(t.clock.now() + 60 * SECOND),
  ])
  t.clock.advance(59 * SECOND)
  expect(await t.signingKeys.current(1)).toHaveLength(2)
  t.clock.advance(SECOND)
  expect((await t.signingKeys.current(1)).map(({ id }) => id)).toEqual([made.id])
  const { items } = await listChanges(t.db, { tenantId: 1, subject: 'signing_key', subjectId: made.id })
  expect(items).toMatchObject([{ action: 'rotate', actor: 'me', before: { id: old?.id }, after: { id: made.id } }])
})

test('many rotations leave at most five keys, and an overlap that is none is refused', async () => {
  const t = await setup()
  for (let i = 0; i < 8; i++) {
    t.clock.advance(SECOND)
    await t.signingKeys.rotate(1, 3600 * SECOND, 'me')
  }
  expect(await t.signingKeys.current(1)).toHaveLength(5)
  for (const overlap of [-1, 0.5, Number.NaN, 31 * DAY, '1' as never]) {
    await expect(t.signingKeys.rotate(1, overlap, 'me')).rejects.toMatchObject({ code: 'invalid_argument' })
  }
})

test('nodes without a key agree on one that they make', async () => {
  const t = await setup()
  const [one, other] = await Promise.all([keyFromMeta(t.db, systemRandom), keyFromMeta(t.db, systemRandom)])
  expect(one).toEqual(other)
  expect(one).toHaveLength(32)
})

test('a key that the database was not written with is refused at once', async () => {
  const t = await setup()
  const key = randomBytes(32)
  const vault = await openVault(t.db, key)
  const again = await openVault(t.db, key)
  expect(again.open(vault.seal(Buffer.from('x'), 'c'), 'c').toString()).toBe('x')
  await expect(openVault(t.db, randomBytes(32))).rejects.toMatchObject({ code: 'invalid_option' })
})
