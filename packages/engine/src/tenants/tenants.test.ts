import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, KIT_DAYS } from '../../test/database.ts'
import { listChanges } from '../audit/list-changes.sql.ts'
import { Admin } from '../node/admin.ts'
import { systemRandom } from '../runtime/random.ts'
import { startTestNode, type TestNode } from '../testing/test-node.ts'
import { Quotas } from './quotas.sql.ts'

const SECOND = 1_000
const NO_QUOTAS = {
  ...{ activeJobs: null, createsPerSecond: null, requestsPerSecond: null, payloadBytes: null },
  ...{ waitingRuns: null, waitingSeconds: null },
}
const adminOf = (node: Pick<TestNode, 'db' | 'clock'>) =>
  new Admin({ ...node, random: systemRandom, refresh: async () => {} })

async function setup() {
  const { schema, query, drop } = await createDatabase({ days: KIT_DAYS })
  onTestFinished(drop)
  const node = await startTestNode({
    database: inject('postgres'),
    schema,
    shards: 4,
    start: Date.UTC(2026, 0, 1),
    seed: 1,
    leaseMs: 30_000,
    cancelGraceMs: 10_000,
  })
  const { db, clock, engine } = node
  onTestFinished(() => db.close())
  const admin = adminOf({ db, clock })
  const quotas = new Quotas({ db, clock, tenants: admin.tenants })
  const changesOf = async (id: number) =>
    (await listChanges(db, { tenantId: id, subject: 'tenant', subjectId: String(id) })).items
  return { db, clock, query, engine, admin, tenants: admin.tenants, quotas, changesOf }
}

test('a tenant is made with what was given and defaults for the rest, and can be found', async () => {
  const { tenants, clock } = await setup()
  const made = await tenants.create({ name: 'acme', quotas: { activeJobs: 10 } }, 'root')
  expect(made).toEqual({
    id: 2,
    name: 'acme',
    tier: 'standard',
    weight: 1,
    quotas: { ...NO_QUOTAS, activeJobs: 10 },
    createdAt: new Date(clock.now()),
  })
  expect(await tenants.get(2)).toEqual(made)
  expect(await tenants.byName('acme')).toEqual(made)
  expect(await tenants.byName('acm')).toBeNull()
  await expect(tenants.create({ name: 'acme' }, 'root')).rejects.toMatchObject({ code: 'name_taken' })
  await expect(tenants.create({ name: 'default' }, 'root')).rejects.toMatchObject({ code: 'name_taken' })
})

test('tenants that are made at the same time get numbers of their own', async () => {
  const { tenants } = await setup()
  const made = await Promise.all(Array.from({ length: 12 }, (_, i) => tenants.create({ name: `t${i}` }, 'root')))
  expect(made.map(({ id }) => id).sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i + 2))
})

test('the number of a deleted tenant is never given to another', async () => {
  const { tenants } = await setup()
  const first = await tenants.create({ name: 'first' }, 'root')
  await tenants.delete(first.id, 'root')
  const second = await tenants.create({ name: 'first' }, 'root')
  expect(second.id).toBe(first.id + 1)
})

test('a list goes through all tenants, page by page', async () => {
  const { tenants } = await setup()
  for (const name of ['a', 'b', 'c']) await tenants.create({ name }, 'root')
  const one = await tenants.list({ limit: 3 })
  expect(one.items.map(({ name }) => name)).toEqual(['default', 'a', 'b'])
  const two = await tenants.list({ limit: 3, cursor: one.nextCursor ?? '' })
  expect([two.items.map(({ name }) => name), two.nextCursor]).toEqual([['c'], null])
  await expect(tenants.list({ cursor: 'x' })).rejects.toMatchObject({ code: 'invalid_argument' })
})

test('an update changes what it names, takes a quota away with null, and leaves its row; one that changes nothing does not', async () => {
  const { tenants, changesOf } = await setup()
  const made = await tenants.create(
    { name: 'acme', tier: 'gold', quotas: { activeJobs: 10, createsPerSecond: 5 } },
    'root',
  )
  const updated = await tenants.update(made.id, { weight: 7, quotas: { activeJobs: null } }, 'bk_someone')
  expect(updated).toEqual({ ...made, weight: 7, quotas: { ...NO_QUOTAS, createsPerSecond: 5 } })
  expect(await tenants.get(made.id)).toEqual(updated)
  await tenants.update(made.id, { weight: 7 }, 'bk_someone')
  const json = (value: unknown) => JSON.parse(JSON.stringify(value))
  expect(await changesOf(made.id)).toMatchObject([
    { action: 'create', actor: 'root', before: null, after: json(made) },
    { action: 'update', actor: 'bk_someone', before: json(made), after: json(updated) },
  ])
  expect(await changesOf(made.id)).toHaveLength(2)
})

test('hostile tenants are refused with all that is wrong, and nothing is stored', async () => {
  const { tenants } = await setup()
  const names = [
    '',
    ' ',
    'a b',
    "a'; drop table tenants; --",
    'a\0',
    'ä',
    'x'.repeat(129),
    '\ud800',
    7,
    null,
    undefined,
    {},
  ]
  for (const name of names) {
    await expect(tenants.create({ name } as never, 'root'), String(name)).rejects.toMatchObject({
      code: 'invalid_argument',
    })
    expect(await tenants.byName(name as string)).toBeNull()
  }
  for (const input of [
    null,
    7,
    [],
    { name: 'a', weight: 0 },
    { name: 'a', weight: 1001 },
    { name: 'a', weight: 1.5 },
  ]) {
    await expect(tenants.create(input as never, 'root')).rejects.toMatchObject({ code: 'invalid_argument' })
  }
  const quotas = { activeJob: 3, createsPerSecond: -1, payloadBytes: 2 ** 31, requestsPerSecond: '5' }
  await expect(tenants.create({ name: 'a b', tier: '', quotas } as never, 'root')).rejects.toMatchObject({
    complaints: [
      { path: 'name', suggestion: 'a-b' },
      { path: 'tier' },
      { path: 'quotas.activeJob', suggestion: 'activeJobs' },
      { path: 'quotas.createsPerSecond' },
      { path: 'quotas.requestsPerSecond', suggestion: '5' },
      { path: 'quotas.payloadBytes' },
    ],
  })
  await expect(tenants.update(1, { name: 'other' } as never, 'root')).rejects.toMatchObject({
    code: 'invalid_argument',
  })
  expect((await tenants.list()).items).toHaveLength(1)
  await tenants.create({ name: '__proto__' }, 'root')
  expect((await tenants.byName('__proto__'))?.name).toBe('__proto__')
})

test('ids that are none are not found', async () => {
  const { tenants } = await setup()
  for (const id of [0, -1, 1.5, 77, 2 ** 40, Number.NaN, '1', null] as number[]) {
    await expect(tenants.get(id)).rejects.toMatchObject({ code: 'not_found' })
    await expect(tenants.update(id, {}, 'root')).rejects.toMatchObject({ code: 'not_found' })
    await expect(tenants.delete(id, 'root')).rejects.toMatchObject({ code: 'not_found' })
  }
})

test('the tenant default cannot be deleted, nor one that has a job to come, paused, or in flight', async () => {
  const { tenants, engine } = await setup()
  await expect(tenants.delete(1, 'root')).rejects.toMatchObject({ code: 'invalid_argument' })
  const { id } = await tenants.create({ name: 'acme' }, 'root')
  const refused = () => expect(tenants.delete(id, 'root')).rejects.toMatchObject({ code: 'not_empty' })
  const tenant = { tenant: 'acme', queue: 'q' }
  const inFlight = await engine.intake.create(tenant)
  await refused()
  await engine.jobChanges.cancel(inFlight.jobId, 'cancel', 'root')
  const recurring = await engine.intake.create({ ...tenant, cron: '0 * * * *' })
  await engine.jobChanges.pause(recurring.jobId, null, 'root')
  await refused()
  await engine.jobChanges.cancel(recurring.jobId, 'cancel', 'root')
  await tenants.delete(id, 'root')
})

test('a deleted tenant is gone with its keys and secrets, leaves its row, and cannot be deleted again', async () => {
  const { tenants, admin, changesOf, db, clock } = await setup()
  const { id } = await tenants.create({ name: 'acme' }, 'root')
  const { key } = await admin.apiKeys.create({ tenantId: id, name: 'k', scopes: ['read'] }, 'root')
  expect(await admin.apiKeys.authenticate(key)).toMatchObject({ tenant: 'acme' })
  await tenants.delete(id, 'bk_someone')
  await expect(tenants.get(id)).rejects.toMatchObject({ code: 'not_found' })
  await expect(tenants.delete(id, 'bk_someone')).rejects.toMatchObject({ code: 'not_found' })
  expect(await changesOf(id)).toMatchObject([
    { action: 'create' },
    { action: 'delete', actor: 'bk_someone', before: { name: 'acme' }, after: null },
  ])
  clock.advance(SECOND)
  expect(await admin.apiKeys.authenticate(key)).toBeNull()
  expect(await adminOf({ db, clock }).apiKeys.list(id)).toEqual({ items: [], nextCursor: null })
})

test('a deleted tenant can create nothing any more, within a second', async () => {
  const { tenants, engine, clock } = await setup()
  const { id } = await tenants.create({ name: 'acme' }, 'root')
  const { jobId } = await engine.intake.create({ tenant: 'acme', queue: 'q' })
  await engine.jobChanges.cancel(jobId, 'cancel', 'root')
  await tenants.delete(id, 'root')
  clock.advance(SECOND)
  await expect(engine.intake.create({ tenant: 'acme', queue: 'q' })).rejects.toMatchObject({ code: 'invalid_job' })
})

test('quotas are read at most every five seconds, and at once after a change on this node', async () => {
  const { tenants, db, clock } = await setup()
  const elsewhere = adminOf({ db, clock }).tenants
  const { id } = await tenants.create({ name: 'acme' }, 'root')
  expect(await tenants.quotasOf(id)).toEqual(NO_QUOTAS)
  expect(await elsewhere.quotasOf(id)).toEqual(NO_QUOTAS)
  await tenants.update(id, { quotas: { requestsPerSecond: 9 } }, 'root')
  expect((await tenants.quotasOf(id)).requestsPerSecond).toBe(9)
  expect((await elsewhere.quotasOf(id)).requestsPerSecond).toBeNull()
  clock.advance(5 * SECOND)
  expect((await elsewhere.quotasOf(id)).requestsPerSecond).toBe(9)
})

test('a quota of active jobs counts what is to come and what is in flight, each job once, and frees what has ended', async () => {
  for (const name of ['acme', 'default']) {
    const { tenants, engine, quotas, clock } = await setup()
    const { id } = name === 'default' ? await tenants.get(1) : await tenants.create({ name }, 'root')
    await tenants.update(id, { quotas: { activeJobs: 4 } }, 'root')
    const create = async (input: object = {}) => {
      await quotas.admitJobs(id, 1)
      return engine.intake.create({ tenant: name, queue: 'q', ...input })
    }
    const first = await create()
    await create({ delay: '1h' })
    const recurring = await create({ cron: '0 * * * *' })
    await engine.jobChanges.trigger(recurring.jobId, 'root')
    await create()
    await expect(create()).rejects.toMatchObject({ code: 'quota_exceeded' })
    clock.advance(SECOND)
    await expect(create()).rejects.toMatchObject({ code: 'quota_exceeded' })
    await engine.jobChanges.cancel(first.jobId, 'cancel', 'root')
    clock.advance(SECOND)
    await create()
    await expect(create()).rejects.toMatchObject({ code: 'quota_exceeded' })
  }
})

test('limits of what waits are set, shown, recorded and taken away, and the answer comes when this node knows', async () => {
  const { db, clock, changesOf } = await setup()
  let known = 0
  const refresh = async () => {
    known++
  }
  const { tenants } = new Admin({ db, clock, random: systemRandom, refresh })
  const { id } = await tenants.create({ name: 'plain', quotas: { activeJobs: 1 } }, 'root')
  await tenants.update(id, { weight: 2 }, 'root')
  expect(known).toBe(0)
  const limits = { waitingRuns: 5, waitingSeconds: 60 }
  expect((await tenants.update(id, { quotas: limits }, 'root')).quotas).toMatchObject({ activeJobs: 1, ...limits })
  expect((await tenants.get(id)).quotas).toMatchObject(limits)
  await tenants.update(id, { quotas: limits }, 'root')
  expect(known).toBe(1)
  await tenants.update(id, { quotas: { waitingRuns: null } }, 'root')
  expect((await tenants.get(id)).quotas).toEqual({ ...NO_QUOTAS, activeJobs: 1, waitingSeconds: 60 })
  await tenants.create({ name: 'limited', quotas: { waitingSeconds: 1 } }, 'root')
  expect(known).toBe(3)
  expect((await changesOf(id)).at(-1)).toMatchObject({
    ...{ action: 'update', actor: 'root', before: { quotas: limits } },
    after: { quotas: { waitingRuns: null, waitingSeconds: 60 } },
  })
  for (const wrong of [
    { waitingRuns: 0 },
    { waitingRuns: 1_000_001 },
    { waitingSeconds: 0 },
    { waitingSeconds: 604_801 },
  ])
    await expect(tenants.update(id, { quotas: wrong }, 'root')).rejects.toMatchObject({ code: 'invalid_argument' })
})

test('no more tenants have limits of what waits than nodes are told of', async () => {
  const { tenants, query } = await setup()
  const { id } = await tenants.create({ name: 'acme', quotas: { waitingRuns: 5 } }, 'root')
  await query(
    `insert into tenants (id, name, max_waiting_seconds) select n, 't' || n, 5 from generate_series(101, 10099) n`,
  )
  const refused = { code: 'quota_exceeded', message: expect.stringContaining('may have 10000 tenants') }
  await expect(tenants.create({ name: 'more', quotas: { waitingRuns: 5 } }, 'root')).rejects.toMatchObject(refused)
  await expect(tenants.update(1, { quotas: { waitingSeconds: 5 } }, 'root')).rejects.toMatchObject(refused)
  await tenants.update(id, { quotas: { waitingRuns: 6 } }, 'root')
  await tenants.create({ name: 'more', quotas: { activeJobs: 5 } }, 'root')
})

test('a batch that does not fit is refused whole, and creates at the same time share what is left', async () => {
  const { tenants, quotas } = await setup()
  const { id } = await tenants.create({ name: 'acme', quotas: { activeJobs: 10 } }, 'root')
  await expect(quotas.admitJobs(id, 11)).rejects.toMatchObject({ code: 'quota_exceeded' })
  const asked = await Promise.allSettled(Array.from({ length: 15 }, () => quotas.admitJobs(id, 1)))
  expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
})

test('without a quota anything is admitted, and a payload may have 10 MiB; with one, what it says', async () => {
  const { tenants, quotas } = await setup()
  await quotas.admitJobs(1, 1_000_000)
  expect(await quotas.payloadLimit(1)).toBe(10 * 1024 * 1024)
  await tenants.update(1, { quotas: { payloadBytes: 1000 } }, 'root')
  expect(await quotas.payloadLimit(1)).toBe(1000)
})
