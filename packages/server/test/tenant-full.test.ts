import { expect, test } from 'vitest'
import { oneNodeForAll } from './api.ts'

const setup = oneNodeForAll()

const job = { queue: 'work', payload: 1 }
/** Nobody answers there, and nobody asks before its time. */
const call = { http: { url: 'https://api.example.com/' }, delay: '1h' }

test('a tenant that is full is answered 429 from the moment its quota was set, for whatever queue, until it is taken away', async () => {
  const t = await setup()
  const quotasOf = async () => (await t.call<{ quotas: object }>(`GET /v1/tenants/${t.tenantId}`)).body.quotas
  const limit = (quotas: object) => t.call<{ quotas: object }>(`PATCH /v1/tenants/${t.tenantId}`, { quotas })
  expect((await t.call('POST /v1/jobs/batch', { jobs: [job, job] })).status).toBe(201)
  expect(await limit({ waitingRuns: 2, waitingSeconds: 600 })).toMatchObject({
    status: 200,
    body: { quotas: { waitingRuns: 2, waitingSeconds: 600, activeJobs: null } },
  })
  const refused = await t.call('POST /v1/jobs', call)
  expect(refused.body).toMatchObject({
    status: 429,
    code: 'tenant_full',
    detail: expect.stringContaining('2 runs wait in all its queues, and its quota waitingRuns is 2'),
  })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await t.call('POST /v1/jobs', job)).body).toMatchObject({ code: 'tenant_full' })
  expect((await t.call('PUT /v1/jobs/by-name/report', { cron: '0 9 * * *', payload: 1 })).status).toBe(201)
  // What never fits is no matter of waiting.
  const never = await t.call('POST /v1/jobs/batch', { jobs: [job, job, job] })
  expect(never).toMatchObject({ status: 422, body: { detail: expect.stringContaining('send at most 2 of them') } })
  await limit({ waitingRuns: null })
  expect(await quotasOf()).toMatchObject({ waitingRuns: null, waitingSeconds: 600 })
  expect((await t.call('POST /v1/jobs', call)).status).toBe(201)
})

test('limits of what waits that cannot be are refused by name', async () => {
  const t = await setup()
  for (const [quota, max] of [
    ['waitingRuns', 1_000_000],
    ['waitingSeconds', 604_800],
  ] as const) {
    const set = (value: unknown) => t.call(`PATCH /v1/tenants/${t.tenantId}`, { quotas: { [quota]: value } })
    expect((await set(max)).status).toBe(200)
    for (const wrong of [0, -1, 1.5, max + 1, '5'])
      expect(await set(wrong)).toMatchObject({ status: 422, body: { errors: [{ path: `quotas.${quota}` }] } })
  }
})
