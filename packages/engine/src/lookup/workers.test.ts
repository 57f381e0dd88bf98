import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { shardOfKey } from '../job/ids.ts'
import { silentLogger } from '../runtime/logger.ts'
import { Database } from '../store/database.ts'
import {
  deleteWorker,
  purgeWorkers,
  putWorker,
  type Sighting,
  sawWorkers,
  type WorkerFields,
} from '../tenants/worker-rows.sql.ts'
import { getWorker, type ListWorkers, listWorkers } from './worker-view.ts'

const NOW = Date.UTC(2026, 10, 15, 13, 30)
const SHARDS = 8

async function setup() {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  const db = new Database({
    connection: inject('postgres'),
    schema: database.schema,
    logger: silentLogger,
  })
  onTestFinished(() => db.close())
  const key = (id: string, tenantId = 1) => ({ tenantId, id, shards: SHARDS })
  const put = (id: string, fields: WorkerFields = {}, now = NOW) => putWorker(db, key(id), fields, now)
  const saw = (sightings: Partial<Sighting>[], now = NOW) =>
    sawWorkers(
      db,
      sightings.map((one) => ({
        tenantId: 1,
        id: 'w1',
        queue: null,
        seenAt: now,
        inFlight: null,
        isNew: true,
        ...one,
      })),
      SHARDS,
    )
  const get = (id: string, now = NOW, tenantId = 1) => getWorker(db, key(id, tenantId), now)
  const list = async (request: ListWorkers = {}, now = NOW) => {
    const found: string[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await listWorkers(db, {
        ...{ ...request, tenantId: 1, shards: SHARDS, now },
        ...(cursor === undefined ? {} : { cursor }),
      })
      found.push(...page.items.map(({ id }) => id))
      cursor = page.nextCursor
    }
    return found
  }
  return { ...database, db, key, put, saw, get, list }
}

test('a worker that registers is shown as it described itself', async () => {
  const t = await setup()
  await t.put('w1', { queues: ['mails', 'NULL', 'calls'], capacity: 20, version: '1.4', labels: { zone: 'a' } })
  expect(await t.get('w1', NOW + 1_000)).toEqual({
    id: 'w1',
    status: 'active',
    queues: ['NULL', 'calls', 'mails'],
    capacity: 20,
    version: '1.4',
    labels: { zone: 'a' },
    startedAt: new Date(NOW),
    lastSeenAt: new Date(NOW),
    inFlight: 0,
  })
  const [row] = await t.query<{ shard: number }>('select shard from workers')
  expect(row?.shard).toBe(shardOfKey(1, 'w1', SHARDS))
})

test('registering again changes what is given and leaves the rest', async () => {
  const t = await setup()
  await t.put('w1', { queues: ['mails'], capacity: 20, version: '1.4', labels: { zone: 'a' }, draining: true })
  await t.put('w1', { queues: ['calls'], capacity: 5 }, NOW + 1_000)
  expect(await t.get('w1', NOW + 1_000)).toMatchObject({
    ...{ status: 'draining', queues: ['calls'], capacity: 5, version: '1.4', labels: { zone: 'a' } },
    ...{ startedAt: new Date(NOW), lastSeenAt: new Date(NOW + 1_000) },
  })
  await t.put('w1', { draining: false, queues: [] }, NOW + 2_000)
  expect(await t.get('w1', NOW + 2_000)).toMatchObject({ status: 'active', queues: [], capacity: 5 })
})

test('a worker that only calls is known by its calls', async () => {
  const t = await setup()
  await t.saw([{ queue: 'mails' }, { queue: 'calls', inFlight: 7 }, { queue: 'mails' }])
  expect(await t.get('w1')).toMatchObject({ status: 'active', queues: ['calls', 'mails'], inFlight: 7, capacity: null })
  await t.saw([{ queue: 'more' }], NOW + 5_000)
  expect(await t.get('w1', NOW + 5_000)).toMatchObject({
    ...{ queues: ['calls', 'mails', 'more'], inFlight: 7 },
    ...{ startedAt: new Date(NOW), lastSeenAt: new Date(NOW + 5_000) },
  })
  await t.saw([{ inFlight: 0 }], NOW + 4_000)
  expect(await t.get('w1', NOW + 5_000)).toMatchObject({ inFlight: 0, lastSeenAt: new Date(NOW + 5_000) })
})

test('a worker that names ever new queues is known for a bounded number of them', async () => {
  const t = await setup()
  await t.saw(Array.from({ length: 250 }, (_, i) => ({ queue: `q${i}` })))
  for (let i = 250; i < 300; i++) await t.saw([{ queue: `q${i}` }])
  expect((await t.get('w1'))?.queues.length).toBeLessThanOrEqual(200)
})

test('sightings tell who shall drain, each of its own tenant', async () => {
  const t = await setup()
  await t.put('w1', { draining: true })
  await t.put('w2', { draining: false })
  const seen = await t.saw([{ id: 'w1' }, { id: 'w2' }, { id: 'w3' }, { id: 'w1', tenantId: 2 }])
  expect(seen).toHaveLength(4)
  expect(seen.filter(({ isDraining }) => isDraining)).toEqual([{ tenantId: 1, id: 'w1', isDraining: true }])
})

test('who was seen before and is gone from the registry has left, and does not come back by being seen', async () => {
  const t = await setup()
  expect(await t.saw([{ id: 'left', isNew: false }, { id: 'new' }])).toMatchObject([{ id: 'new' }])
  expect(await t.saw([{ id: 'new', isNew: false }])).toMatchObject([{ id: 'new' }])
})

test('a worker that is not seen for half a minute is lost, and back when it calls again', async () => {
  const t = await setup()
  await t.put('w1', { capacity: 1 })
  await t.put('w2', { capacity: 1, draining: true })
  expect((await t.get('w1', NOW + 29_999))?.status).toBe('active')
  expect((await t.get('w1', NOW + 30_000))?.status).toBe('lost')
  expect((await t.get('w2', NOW + 30_000))?.status).toBe('lost')
  await t.saw([{ id: 'w1' }, { id: 'w2' }], NOW + 40_000)
  expect((await t.get('w1', NOW + 40_000))?.status).toBe('active')
  expect((await t.get('w2', NOW + 40_000))?.status).toBe('draining')
})

test('to ask a lost worker to drain does not bring it back', async () => {
  const t = await setup()
  await t.put('w1', { capacity: 1 })
  await t.put('w1', { draining: true }, NOW + 60_000)
  expect(await t.get('w1', NOW + 60_000)).toMatchObject({ status: 'lost', lastSeenAt: new Date(NOW) })
})

test('workers are listed by id, whatever the size of a page, without those of others', async () => {
  const t = await setup()
  const ids = Array.from({ length: 25 }, (_, i) => `w-${String(i).padStart(2, '0')}`)
  await t.saw(ids.map((id) => ({ id })))
  await t.saw(ids.map((id) => ({ id: `${id}x`, tenantId: 2 })))
  for (const limit of [1, 7, 25, 100]) expect(await t.list({ limit })).toEqual(ids)
})

test('workers are filtered by queue and by status', async () => {
  const t = await setup()
  await t.saw([{ id: 'lost', queue: 'mails' }], NOW - 30_000)
  await t.saw([
    { id: 'active', queue: 'mails' },
    { id: 'draining', queue: 'calls' },
  ])
  await t.put('draining', { draining: true })
  await t.put('lost', { draining: true })
  expect(await t.list({ status: 'active' })).toEqual(['active'])
  expect(await t.list({ status: 'draining' })).toEqual(['draining'])
  expect(await t.list({ status: 'lost' })).toEqual(['lost'])
  expect(await t.list({ queue: 'mails', limit: 1 })).toEqual(['active', 'lost'])
  expect(await t.list({ queue: 'mails', status: 'active' })).toEqual(['active'])
  expect(await t.list({ queue: 'none' })).toEqual([])
  await expect(t.list({ status: 'activ' as 'active' })).rejects.toMatchObject({
    complaints: [{ path: 'status', suggestion: 'active' }],
  })
  await expect(t.list({ cursor: 'bm8gc3VjaCBpZA' })).rejects.toMatchObject({ code: 'invalid_argument' })
})

test('a worker is deleted once, and only by its own tenant', async () => {
  const t = await setup()
  await t.put('w1')
  expect(await deleteWorker(t.db, t.key('w1', 2))).toBe(false)
  expect(await deleteWorker(t.db, t.key('w1'))).toBe(true)
  expect(await deleteWorker(t.db, t.key('w1'))).toBe(false)
  expect(await t.get('w1')).toBeNull()
  expect(await t.get('no such id')).toBeNull()
})

test('workers that were not seen for long are forgotten, in bounded bites', async () => {
  const t = await setup()
  await t.saw(Array.from({ length: 1_500 }, (_, i) => ({ id: `old-${i}` })))
  await t.saw([{ id: 'new' }], NOW + 1)
  expect(await purgeWorkers(t.db, NOW + 1)).toBe(1_000)
  expect(await purgeWorkers(t.db, NOW + 1)).toBe(500)
  expect(await purgeWorkers(t.db, NOW + 1)).toBe(0)
  expect(await t.list()).toEqual(['new'])
})

test('two nodes that see the same workers at once do not stop each other', async () => {
  const t = await setup()
  const ids = Array.from({ length: 300 }, (_, i) => ({ id: `w${i}`, inFlight: i }))
  const rounds = Array.from({ length: 20 }, (_, i) => t.saw(i % 2 === 0 ? ids : ids.toReversed(), NOW + i))
  await Promise.all(rounds)
  expect((await t.list()).length).toBe(300)
  expect(await t.get('w7')).toMatchObject({ inFlight: 7, lastSeenAt: new Date(NOW + 19) })
})
