import { expect, test } from 'vitest'
import { oneNodeForAll } from './api.ts'

const setup = oneNodeForAll()

test('a queue is limited, shown with its limits, and freed', async () => {
  const t = await setup()
  const limits = { maxRunning: 20, rateLimit: { limit: 100, period: 'PT1S', burst: 20 } }
  expect((await t.call('PUT /v1/queues/mail', limits)).body).toMatchObject({ name: 'mail', ...limits })
  expect((await t.call('PUT /v1/queues/mail', { maxRunning: null })).body).toMatchObject({
    ...limits,
    maxRunning: null,
  })
  expect((await t.call('GET /v1/queues/mail')).body).toMatchObject({ ...limits, maxRunning: null })
  expect((await t.call('PUT /v1/queues/mail', { rateLimit: null })).body).toMatchObject({
    maxRunning: null,
    rateLimit: null,
  })
  for (const bad of [
    { maxRunning: 0 },
    { rateLimit: { limit: 5 } },
    { rateLimit: { limit: 5, period: '1 fortnight' } },
  ])
    expect((await t.call('PUT /v1/queues/mail', bad)).status, JSON.stringify(bad)).toBe(422)
})

test('only an operator limits a queue that all tenants share', async () => {
  const t = await setup()
  const { body } = await t.call<{ id: string }>('POST /v1/tenants', { name: 'limiting' })
  const made = await t.call<{ key: string }>('POST /v1/api-keys', {
    tenantId: body.id,
    name: 'k',
    scopes: ['read', 'write'],
  })
  const own = t.as(made.body.key)
  expect((await own('PUT /v1/queues/http', { maxRunning: 5 })).body).toMatchObject({ status: 403, code: 'forbidden' })
  expect((await t.call('PUT /v1/queues/http', { maxRunning: 900 })).body).toMatchObject({ maxRunning: 900 })
  expect((await own('GET /v1/queues/http')).body).toMatchObject({ maxRunning: 900 })
  expect((await t.call('PUT /v1/queues/http', { maxRunning: null })).body).toMatchObject({ maxRunning: null })
})

test('an origin is limited, listed and freed by its address', async () => {
  const t = await setup()
  const path = `/v1/origins/${encodeURIComponent('https://api.example.com:443')}`
  const limits = { maxRunning: 10, rateLimit: null }
  expect(await t.call(`PUT ${path}`, { maxRunning: 10 })).toMatchObject({
    status: 201,
    body: { origin: 'https://api.example.com', ...limits },
  })
  expect((await t.call(`PUT ${path}`, { maxRunning: 11 })).status).toBe(200)
  const listed = await t.call<{ items: object[] }>('GET /v1/origins')
  expect(listed.body.items).toContainEqual({ origin: 'https://api.example.com', ...limits, maxRunning: 11 })
  expect((await t.call(`PUT ${path}`, {})).body).toMatchObject({ status: 422, code: 'invalid_argument' })
  expect((await t.call(`DELETE ${path}`)).status).toBe(204)
  expect((await t.call(`GET ${path}`)).body).toMatchObject({ status: 404, code: 'not_found' })
})
