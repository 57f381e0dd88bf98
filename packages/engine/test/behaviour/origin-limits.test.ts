import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import type { LimitsInput } from '../../src/concurrency/shared-limit-fields.ts'
import type { Engine } from '../../src/node/engine.ts'
import type { Reader } from '../../src/store/reader.ts'
import { TenantOrigins } from '../../src/tenant-origins.ts'
import { TenantScope } from '../../src/tenant-scope.ts'
import { fail, ok, startHttpNodes, startTarget } from './http-kit.ts'
import { SECOND, START } from './kit.ts'

const originsOf = (engine: Engine): TenantOrigins => {
  const reader = { of: () => engine.db } as unknown as Reader
  const caller = { tenantId: 1, tenant: 'default', actor: 'test' }
  return new TenantOrigins(new TenantScope(caller, engine, { fresh: reader, lists: reader }))
}

async function setup(limits: LimitsInput, nodes = 1) {
  const t = await startHttpNodes({ nodes })
  const target = await startTarget(t.clock)
  const origins = originsOf(t.node.engine)
  await origins.put(target.url, limits)
  const call = (count: number, more: object = {}) =>
    t.jobs.createMany(Array(count).fill({ http: { url: target.url }, timeout: '60s', ...more }))
  const admitted = async () =>
    (await t.query<{ n: number }>('select count(*)::int as n from runs where state = 1 and gate_key is not null'))[0]?.n
  return { ...t, target, origins, call, admitted }
}

test('two nodes together make no more calls to a limited origin at a time than it allows, and all are made', async () => {
  const t = await setup({ maxRunning: 3 }, 2)
  const open: ServerResponse[] = []
  t.target.answer = (response) => void open.push(response)
  await t.call(9)
  await t.settle()
  expect([t.target.active(), await t.admitted()]).toEqual([3, 3])
  expect(await t.query('select distinct failures from runs where state = 2')).toEqual([{ failures: 0 }])
  const [held] = await t.query<{ error: string; counted: boolean }>('select error, counted from attempts limit 1')
  expect(held).toEqual({
    error: `${t.target.url} is limited to 3 runs at a time, and so many are under way`,
    counted: false,
  })
  for (const response of open.splice(0)) response.end()
  t.target.answer = ok
  await t.pass(12 * SECOND, 250)
  expect(t.target.most).toBe(3)
  expect(await t.query('select from runs')).toEqual([])
  const [done] = await t.query<{ n: number }>('select count(*)::int as n from attempts where final and outcome = 1')
  expect(done?.n).toBe(9)
})

test('calls start at the rate of their origin, and no more at once than its burst', async () => {
  const t = await setup({ rateLimit: { limit: 10, period: 'PT1S', burst: 4 } }, 2)
  await t.call(40)
  await t.pass(2 * SECOND, 50)
  const times = t.target.seen.map(({ at }) => at - START)
  const tooEarly = times.filter((at, i) => i + 1 > 4 + at / 100)
  expect(tooEarly).toEqual([])
  expect(times.length).toBeGreaterThanOrEqual(0.9 * 24)
})

test('an attempt that ended is not counted any more, whoever performs the next one', async () => {
  const t = await setup({ maxRunning: 1 })
  t.target.answer = fail
  await t.call(1, { retry: { maxAttempts: 3, backoff: { type: 'fixed', initial: 'PT5S', jitter: 0 } } })
  await t.settle()
  expect(await t.query('select state, gate_key, failures from runs')).toEqual([
    { state: 2, gate_key: null, failures: 1 },
  ])
  t.target.answer = ok
  await t.call(1)
  await t.settle()
  expect(t.target.seen).toHaveLength(2)
})

test('a limit that is taken away lets all calls through, and other origins are none of its business', async () => {
  const t = await setup({ maxRunning: 1 })
  const other = await startTarget(t.clock)
  t.target.answer = () => {}
  await t.call(5)
  await t.jobs.createMany(Array(5).fill({ http: { url: other.url }, timeout: '60s' }))
  await t.settle()
  expect([t.target.active(), other.seen.length]).toEqual([1, 5])
  await t.origins.delete(t.target.url)
  await t.pass(6 * SECOND, 250)
  expect(t.target.active()).toBe(5)
})

test('what a limit has put aside comes back when the limit is raised or taken away, not when it was told', async () => {
  const t = await setup({ maxRunning: 1 })
  t.target.answer = () => {}
  await t.call(40)
  await t.settle()
  expect(t.target.active()).toBe(1)
  await t.origins.put(t.target.url, { maxRunning: 10 })
  await t.pass(SECOND, 100)
  expect(t.target.active()).toBe(10)
  await t.origins.put(t.target.url, { rateLimit: { limit: 1, period: 'PT1M' } })
  await t.pass(SECOND, 100)
  expect(t.target.active()).toBeLessThanOrEqual(12)
  await t.origins.delete(t.target.url)
  await t.pass(SECOND, 100)
  expect(t.target.active()).toBe(40)
})

test('a target that gets quicker is called as often as its limit allows, though runs were put aside for minutes', async () => {
  const t = await setup({ maxRunning: 1 })
  const open: ServerResponse[] = []
  t.target.answer = (response) => void open.push(response)
  await t.call(80)
  await t.pass(2 * SECOND, 500)
  const [away] = await t.query<{ s: number }>(
    `select extract(epoch from max(due_at) - to_timestamp(${t.clock.now() / 1000}))::int as s from runs where state = 2`,
  )
  expect(away?.s).toBeGreaterThan(30)
  t.target.answer = ok
  for (const response of open) response.end()
  await t.pass(8 * SECOND, 200)
  expect(t.target.most).toBe(1)
  expect(t.target.seen.length).toBeGreaterThan(20)
})

test('limits of origins are written, listed and refused in words', async () => {
  const t = await setup({ maxRunning: 3 })
  await t.origins.put('https://api.example.com/', { rateLimit: { limit: 5, period: '1m' } })
  const first = await t.origins.list({ limit: 1 })
  const second = await t.origins.list({ limit: 1, cursor: first.nextCursor ?? '' })
  expect([...first.items, ...second.items]).toEqual([
    { origin: t.target.url, maxRunning: 3, rateLimit: null },
    { origin: 'https://api.example.com', maxRunning: null, rateLimit: { limit: 5, period: 'PT1M', burst: 5 } },
  ])
  for (const [origin, limits] of [
    ['https://api.example.com/path', { maxRunning: 1 }],
    ['ftp://example.com', { maxRunning: 1 }],
    ['https://example.com', {}],
    ['https://example.com', { maxRunning: 0 }],
    ['https://example.com', { maxRunning: -1 }],
    ['https://example.com', { rateLimit: { limit: 5, period: 'PT0S' } }],
  ] as [string, LimitsInput][])
    await expect(t.origins.put(origin, limits), origin).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(t.origins.delete('https://example.com')).rejects.toMatchObject({ code: 'not_found' })
})
