import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { QUEUE_KIND } from '../job/states.ts'
import { SystemClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { Database } from '../store/database.ts'
import { Registry } from './registry.sql.ts'

const { worker, http } = QUEUE_KIND
const TENANT = 7

async function setup() {
  const database = await createDatabase()
  const db = new Database({
    connection: inject('postgres'),
    schema: database.schema,
    logger: silentLogger,
  })
  onTestFinished(async () => {
    await db.close()
    await database.drop()
  })
  const kindOf = async (name: string) =>
    (await database.query<{ kind: number | null }>('select kind from queues where name = $1', [name]))[0]?.kind
  return { database, kindOf, node: () => new Registry(db.aside, new SystemClock()) }
}

test('the first use of a queue decides its kind, on every node', async () => {
  const { node, kindOf } = await setup()
  const first = node()
  const id = await first.queueId(TENANT, 'mails', worker)
  expect(await first.queueId(TENANT, 'mails', worker)).toBe(id)
  expect(await node().queueId(TENANT, 'mails', worker)).toBe(id)
  for (const registry of [first, node()]) {
    await expect(registry.queueId(TENANT, 'mails', http)).rejects.toMatchObject({ code: 'queue_kind', status: 409 })
  }
  await node().queueId(TENANT, 'hooks', http)
  await expect(first.queueId(TENANT, 'hooks')).rejects.toMatchObject({ code: 'queue_kind' })
  expect(await Promise.all([kindOf('mails'), kindOf('hooks')])).toEqual([worker, http])
})

test('a queue that was made without a kind gets that of its first use', async () => {
  const { database, node, kindOf } = await setup()
  await database.query("insert into queues (id, tenant_id, name) values (100, $1, 'undecided')", [TENANT])
  const decided = await Promise.allSettled(
    Array.from({ length: 8 }, (_, i) => node().queueId(TENANT, 'undecided', i % 2 === 0 ? worker : http)),
  )
  const kind = await kindOf('undecided')
  expect([worker, http]).toContain(kind)
  const right = decided.filter((_, i) => (i % 2 === 0 ? worker : http) === kind)
  expect(right).toEqual(Array(4).fill({ status: 'fulfilled', value: 100 }))
  expect(decided.filter(({ status }) => status === 'rejected')).toHaveLength(4)
})

test('nodes that make queues at once agree on their numbers', async () => {
  const { node } = await setup()
  const names = ['a', 'b', 'c', 'd', 'e']
  const [one, two] = [node(), node()]
  const [ids, others] = await Promise.all(
    [one, two].map((each) => Promise.all(names.map((name) => each.queueId(TENANT, name)))),
  )
  expect(ids).toEqual(others)
  expect(new Set(ids).size).toBe(names.length)
})

test('the queue of HTTP calls is one for all tenants, and not for workers', async () => {
  const { node } = await setup()
  const registry = node()
  const id = await registry.httpQueueId()
  expect(await registry.queueId(TENANT, 'http', http)).toBe(id)
  expect(await node().queueId(TENANT + 1, 'http', http)).toBe(id)
  await expect(registry.queueId(TENANT, 'http', worker)).rejects.toMatchObject({ code: 'queue_kind' })
  await expect(node().queueId(TENANT, 'http', worker)).rejects.toMatchObject({ code: 'queue_kind' })
})
