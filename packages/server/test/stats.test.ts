import { expect, onTestFinished, test } from 'vitest'
import { startApi } from './api.ts'

test('stats are of the tenant that asks; those of the installation are for its own key', async () => {
  const api = await startApi()
  onTestFinished(() => api.stop())
  api.belfry.handle('mail', () => 'sent')
  const { body: tenant } = await api.call<{ id: string }>('POST /v1/tenants', { name: 'acme' })
  const key = async (scopes: string[]) =>
    (await api.call<{ key: string }>('POST /v1/api-keys', { tenantId: tenant.id, name: 'k', scopes })).body.key
  const [reader, admin] = [api.as(await key(['read'])), api.as(await key(['admin']))]
  const { body: made } = await api.call<{ jobId: string }>('POST /v1/jobs', { queue: 'mail' })
  await api.call('POST /v1/jobs', { queue: 'idle' })
  await admin('POST /v1/jobs', { queue: 'idle', delay: '1h' })
  await admin('POST /v1/jobs', { queue: 'idle' })
  const status = async () => (await api.call<{ status: string }>(`GET /v1/jobs/${made.jobId}`)).body.status
  await expect.poll(status).toBe('succeeded')
  expect((await api.call('GET /v1/stats')).body).toMatchObject({
    runs: { ready: 1, queues: [{ name: 'idle', ready: 1 }] },
    lastHour: { succeeded: 1, isComplete: true },
    nextDue: { at: null },
  })
  expect((await reader('GET /v1/stats')).body).toMatchObject({
    runs: { ready: 1 },
    lastDay: { succeeded: 0 },
    deadLetters: { count: 0, isComplete: true },
    nextDue: { at: expect.stringMatching(/Z$/), isComplete: true },
  })
  expect((await api.call('GET /v1/stats?of=installation')).body).toMatchObject({
    runs: { ready: 2 },
    lastHour: { succeeded: 1 },
    nextDue: { at: expect.any(String) },
  })
  for (const call of [reader, admin])
    expect((await call('GET /v1/stats?of=installation')).body).toMatchObject({ status: 403, code: 'forbidden' })
  expect((await reader('GET /v1/stats?of=all')).body).toMatchObject({ status: 422 })
})
