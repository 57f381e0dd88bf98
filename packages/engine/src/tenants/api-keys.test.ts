import { createHash } from 'node:crypto'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, NODE_DAYS } from '../../test/database.ts'
import { listChanges } from '../audit/list-changes.sql.ts'
import { Partitioner } from '../history/partitioner.ts'
import { Admin } from '../node/admin.ts'
import { ManualClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { systemRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'

const SECOND = 1_000

async function setup() {
  const tables = await createDatabase({ days: NODE_DAYS })
  const db = new Database({
    connection: inject('postgres'),
    schema: tables.schema,
    logger: silentLogger,
  })
  const clock = new ManualClock()
  await new Partitioner({ db, clock, logger: silentLogger }).ensure()
  onTestFinished(async () => {
    await db.close()
    await tables.drop()
  })
  const admin = () => new Admin({ db, clock, random: systemRandom, refresh: async () => {} })
  const { tenants, apiKeys } = admin()
  const changesOf = async (id: string) =>
    (await listChanges(db, { tenantId: 1, subject: 'api_key', subjectId: id })).items
  const create = (more: object = {}) =>
    apiKeys.create({ tenantId: 1, name: 'ci', scopes: ['read', 'write'], ...more }, 'root')
  return { ...tables, db, clock, tenants, apiKeys, elsewhere: admin().apiKeys, changesOf, create }
}

test('a key names its tenant and scopes, and only its hash is kept', async () => {
  const t = await setup()
  const made = await t.create()
  expect(made.key).toMatch(/^bk_[0-9A-Za-z]{8}_[0-9A-Za-z]{32,}$/)
  expect(made.key.startsWith(`${made.prefix}_`)).toBe(true)
  expect(await t.apiKeys.authenticate(made.key)).toEqual({
    tenantId: 1,
    tenant: 'default',
    scopes: ['read', 'write'],
    prefix: made.prefix,
    keyId: made.id,
  })
  const [row] = await t.query<{ hash: Buffer }>('select hash from api_keys')
  expect(row?.hash).toEqual(createHash('sha256').update(made.key).digest())
})

test('no two keys are alike', async () => {
  const t = await setup()
  const made = await Promise.all(Array.from({ length: 50 }, () => t.create()))
  expect(new Set(made.map(({ key }) => key)).size).toBe(50)
  expect(new Set(made.map(({ prefix }) => prefix)).size).toBe(50)
})

test('whatever is not a key is nobody', async () => {
  const t = await setup()
  const { key, prefix } = await t.create()
  const last = key.endsWith('a') ? 'b' : 'a'
  const wrong = [
    '',
    'bk_',
    prefix,
    key.slice(0, -1),
    `${key.slice(0, -1)}${last}`,
    `${key}a`,
    ` ${key}`,
    `${key}\0`,
    key.toUpperCase(),
    'x'.repeat(100_000),
    null,
    7,
    {},
  ]
  for (const text of wrong as string[]) expect(await t.apiKeys.authenticate(text)).toBeNull()
  expect(await t.apiKeys.authenticate(key)).not.toBeNull()
})

test('a key is good until the very millisecond at which it expires', async () => {
  const t = await setup()
  const { key } = await t.create({ expiresAt: new Date(t.clock.now() + 10 * SECOND) })
  t.clock.advance(10 * SECOND - 1)
  expect(await t.apiKeys.authenticate(key)).not.toBeNull()
  t.clock.advance(1)
  expect(await t.apiKeys.authenticate(key)).toBeNull()
})

test('a revoked key is nobody at once here, and within a second elsewhere; revoking again changes nothing', async () => {
  const t = await setup()
  const { id, key, prefix } = await t.create()
  expect(await t.elsewhere.authenticate(key)).not.toBeNull()
  await t.apiKeys.revoke(id, 'bk_someone')
  expect(await t.apiKeys.authenticate(key)).toBeNull()
  t.clock.advance(SECOND)
  expect(await t.elsewhere.authenticate(key)).toBeNull()
  await t.apiKeys.revoke(id, 'bk_other')
  expect(await t.changesOf(id)).toMatchObject([
    { action: 'create', actor: 'root', before: null, after: { name: 'ci', prefix, scopes: ['read', 'write'] } },
    { action: 'revoke', actor: 'bk_someone', before: { revokedAt: null }, after: { revokedAt: expect.any(String) } },
  ])
  expect(await t.changesOf(id)).toHaveLength(2)
})

test('a key that somebody tried before it was made works within a second', async () => {
  const t = await setup()
  const { id, key } = await t.create()
  await t.query('update api_keys set revoked_at = now()')
  expect(await t.elsewhere.authenticate(key)).toBeNull()
  await t.query('update api_keys set revoked_at = null where id = $1', [id])
  t.clock.advance(SECOND)
  expect(await t.elsewhere.authenticate(key)).not.toBeNull()
})

test('a rotation gives another key of the same kind, and both are good for the overlap', async () => {
  const t = await setup()
  const expiresAt = new Date(t.clock.now() + 100 * SECOND)
  const old = await t.create({ scopes: ['worker'], expiresAt })
  t.clock.advance(50 * SECOND)
  const made = await t.apiKeys.rotate(old.id, { overlapMs: 10 * SECOND }, 'bk_someone')
  expect(made.key).not.toBe(old.key)
  expect(await t.apiKeys.authenticate(made.key)).toMatchObject({ tenantId: 1, scopes: ['worker'], keyId: made.id })
  t.clock.advance(10 * SECOND - 1)
  expect(await t.apiKeys.authenticate(old.key)).not.toBeNull()
  t.clock.advance(1)
  expect(await t.apiKeys.authenticate(old.key)).toBeNull()
  expect(await t.apiKeys.authenticate(made.key)).not.toBeNull()
  expect((await t.changesOf(old.id)).at(-1)).toMatchObject({
    action: 'rotate',
    actor: 'bk_someone',
    before: { prefix: old.prefix, expiresAt: expiresAt.toISOString() },
    after: { prefix: old.prefix, replacedBy: made.prefix },
  })
  expect(await t.changesOf(made.id)).toMatchObject([{ action: 'create', actor: 'bk_someone', after: { name: 'ci' } }])
  await expect(t.apiKeys.rotate(old.id, { overlapMs: 0 }, 'me')).rejects.toMatchObject({ code: 'already_finished' })
})

test('an overlap never makes a key live longer than it would have', async () => {
  const t = await setup()
  const old = await t.create({ expiresAt: new Date(t.clock.now() + 5 * SECOND) })
  await t.apiKeys.rotate(old.id, { overlapMs: 60 * SECOND }, 'me')
  t.clock.advance(5 * SECOND)
  expect(await t.apiKeys.authenticate(old.key)).toBeNull()
})

test('a rotation without overlap ends the old key at once', async () => {
  const t = await setup()
  const old = await t.create()
  expect(await t.apiKeys.authenticate(old.key)).not.toBeNull()
  const made = await t.apiKeys.rotate(old.id, { overlapMs: 0 }, 'me')
  expect(await t.apiKeys.authenticate(old.key)).toBeNull()
  expect(await t.apiKeys.authenticate(made.key)).not.toBeNull()
})

test('of two who rotate a key at once, with no overlap, one gets a key', async () => {
  const t = await setup()
  const { id } = await t.create()
  const asked = await Promise.allSettled([1, 2, 3].map(() => t.apiKeys.rotate(id, { overlapMs: 0 }, 'me')))
  expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('lists show prefixes and never keys, of one tenant or of all, page by page', async () => {
  const t = await setup()
  const acme = await t.tenants.create({ name: 'acme' }, 'root')
  const made = [await t.create()]
  for (const tenantId of [1, acme.id]) {
    t.clock.advance(1)
    made.push(await t.create({ tenantId }))
  }
  const one = await t.apiKeys.list(null, { limit: 2 })
  const two = await t.apiKeys.list(null, { limit: 2, cursor: one.nextCursor ?? '' })
  expect([...one.items, ...two.items].map(({ id }) => id)).toEqual(made.map(({ id }) => id).reverse())
  expect(two.nextCursor).toBeNull()
  const ofAcme = await t.apiKeys.list(acme.id)
  expect(ofAcme.items).toMatchObject([{ tenant: 'acme', prefix: made[2]?.prefix, revokedAt: null, expiresAt: null }])
  for (const { key } of made) expect(JSON.stringify([one, two])).not.toContain(key.slice(12))
})

test('wrong input is refused with all that is wrong, and scopes with the nearest one', async () => {
  const t = await setup()
  await expect(t.create({ scopes: ['raed', 'admin'], name: '', expires: 1 })).rejects.toMatchObject({
    code: 'invalid_argument',
    complaints: [
      { path: 'key.expires', suggestion: 'expiresAt' },
      { path: 'name' },
      { path: 'scopes[0]', suggestion: 'read' },
    ],
  })
  const wrong = [
    { scopes: [] },
    { scopes: 'read' },
    { scopes: Array(5).fill('read') },
    { tenantId: '1' },
    { name: 'a\0' },
    { name: 'x'.repeat(129) },
    { expiresAt: new Date(0) },
    { expiresAt: new Date(Number.NaN) },
    { expiresAt: 'tomorrow' },
  ]
  for (const more of wrong)
    await expect(t.create(more), JSON.stringify(more)).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(t.create({ tenantId: 77 })).rejects.toMatchObject({ code: 'not_found' })
  const { id } = await t.create({ scopes: ['admin', 'read', 'admin'] })
  expect((await t.apiKeys.list(1)).items[0]?.scopes).toEqual(['read', 'admin'])
  for (const overlapMs of [-1, 1.5, 31 * 86_400_000, Number.NaN, '1' as never]) {
    await expect(t.apiKeys.rotate(id, { overlapMs }, 'me')).rejects.toMatchObject({ code: 'invalid_argument' })
  }
  for (const other of ['', 'x', '019a8d3e-1f2a-7007-8abc-0123456789ab', "' or 1=1", null, 7] as string[]) {
    await expect(t.apiKeys.revoke(other, 'me')).rejects.toMatchObject({ code: 'not_found' })
    await expect(t.apiKeys.rotate(other, { overlapMs: 0 }, 'me')).rejects.toMatchObject({ code: 'not_found' })
  }
})
