import { expect, onTestFinished, test } from 'vitest'
import { startApi } from './api.ts'

interface Key {
  id: string
  prefix: string
  key: string
}

async function setup() {
  const api = await startApi()
  onTestFinished(() => api.stop())
  return api
}

test("the installation's key may do everything, for the tenant that it names", async () => {
  const t = await setup()
  await t.tenant('acme')
  expect((await t.call('GET /v1/whoami')).body).toMatchObject({
    tenant: 'default',
    scopes: ['admin'],
    installation: true,
  })
  const named = await t.call('GET /v1/whoami', undefined, { 'belfry-tenant': 'acme' })
  expect(named.body).toMatchObject({ tenant: 'acme', installation: true })
  const made = await t.call<{ jobId: string }>(
    'POST /v1/jobs',
    { payload: 1, delay: '1h' },
    { 'belfry-tenant': 'acme' },
  )
  expect((await t.call(`GET /v1/jobs/${made.body.jobId}`)).status).toBe(404)
})

test('a tenant has tier, weight and quotas, and goes only when it is empty', async () => {
  const t = await setup()
  const made = await t.call<{ id: number }>('POST /v1/tenants', { name: 'acme', quotas: { activeJobs: 1 } })
  expect(made).toMatchObject({
    status: 201,
    body: { name: 'acme', tier: 'standard', weight: 1, quotas: { activeJobs: 1 } },
  })
  const { id } = made.body
  expect((await t.call('POST /v1/tenants', { name: 'acme' })).body).toMatchObject({ status: 409, code: 'name_taken' })
  const patch = { weight: 5, quotas: { activeJobs: null, createsPerSecond: 7 } }
  expect((await t.call(`PATCH /v1/tenants/${id}`, patch)).body).toMatchObject({
    weight: 5,
    quotas: { activeJobs: null, createsPerSecond: 7 },
  })
  expect((await t.call(`PATCH /v1/tenants/${id}`, { wieght: 5 })).body).toMatchObject({
    status: 422,
    errors: [{ path: 'wieght', suggestion: 'weight' }],
  })
  const job = await t.call<{ jobId: string }>('POST /v1/jobs', { payload: 1, delay: '1h' }, { 'belfry-tenant': 'acme' })
  expect((await t.call(`DELETE /v1/tenants/${id}`)).body).toMatchObject({ status: 409, code: 'not_empty' })
  await t.call(`POST /v1/jobs/${job.body.jobId}/cancel`, undefined, { 'belfry-tenant': 'acme' })
  expect((await t.call(`DELETE /v1/tenants/${id}`)).status).toBe(204)
  expect((await t.call(`GET /v1/tenants/${id}`)).body).toMatchObject({ status: 404, code: 'not_found' })
})

test("a tenant's admin key manages its own keys and sees no other tenant", async () => {
  const t = await setup()
  const [acme, other] = [await t.tenant('acme', ['admin']), await t.tenant('other', ['admin'])]
  const made = await acme.call<Key>('POST /v1/api-keys', { name: 'deploy', scopes: ['write'] })
  expect(made.status).toBe(201)
  expect(made.body.key.startsWith(made.body.prefix)).toBe(true)
  expect((await t.as(made.body.key)('GET /v1/whoami')).body).toMatchObject({ tenant: 'acme', actor: made.body.prefix })
  const foreign = await acme.call('POST /v1/api-keys', { tenantId: Number(other.id), name: 'x', scopes: ['read'] })
  expect(foreign.body).toMatchObject({ status: 404, code: 'not_found' })
  const keys = (await acme.call<{ items: { tenantId: number; key?: string }[] }>('GET /v1/api-keys')).body.items
  expect(new Set(keys.map(({ tenantId }) => tenantId))).toEqual(new Set([acme.id]))
  expect(JSON.stringify(keys)).not.toContain(made.body.key)
  const tenants = (await acme.call<{ items: { name: string }[] }>('GET /v1/tenants')).body.items
  expect(tenants.map(({ name }) => name)).toEqual(['acme'])
  expect((await acme.call('POST /v1/tenants', { name: 'mine' })).body).toMatchObject({ status: 403, code: 'forbidden' })
  expect((await acme.call(`PATCH /v1/tenants/${acme.id}`, { weight: 9 })).body).toMatchObject({ status: 403 })
  const all = (await t.call<{ items: object[] }>('GET /v1/api-keys')).body.items
  expect(all).toHaveLength(3)
})

test('a rotated key and its successor are both good for as long as asked, a revoked one at once no more', async () => {
  const t = await setup()
  const acme = await t.tenant('acme', ['admin'])
  const make = async () => (await acme.call<Key>('POST /v1/api-keys', { name: 'deploy', scopes: ['read'] })).body
  const status = async (key: string) => (await t.as(key)('GET /v1/whoami')).status
  const old = await make()
  const next = (await acme.call<Key>(`POST /v1/api-keys/${old.id}/rotate`, { overlap: '1h' })).body
  expect([await status(old.key), await status(next.key)]).toEqual([200, 200])
  const last = (await acme.call<Key>(`POST /v1/api-keys/${next.id}/rotate`, { overlap: '0s' })).body
  expect([await status(next.key), await status(last.key)]).toEqual([401, 200])
  expect((await acme.call(`DELETE /v1/api-keys/${last.id}`)).status).toBe(204)
  expect(await status(last.key)).toBe(401)
  expect((await acme.call(`GET /v1/api-keys/${last.id}`)).body).toMatchObject({ revokedAt: expect.any(String) })
})

test('a key expires when it was told to', async () => {
  const t = await setup()
  const past = { name: 'old', scopes: ['read'], expiresAt: '2020-01-01T00:00:00Z' }
  expect((await t.call('POST /v1/api-keys', past)).body).toMatchObject({ status: 422 })
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const made = await t.call<Key>('POST /v1/api-keys', { ...past, expiresAt })
  expect((await t.call(`GET /v1/api-keys/${made.body.id}`)).body).toMatchObject({ expiresAt })
})
