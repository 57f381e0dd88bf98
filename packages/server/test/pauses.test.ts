import { expect, test } from 'vitest'
import { oneNodeForAll } from './api.ts'

const setup = oneNodeForAll()

interface Pause {
  id: string
  kind: string
  name: string | null
}

test('what is paused is made once, listed with who did it and why, and ended', async () => {
  const t = await setup()
  const body = { origin: 'https://api.example.com', reason: 'they asked' }
  const made = await t.call<Pause>('POST /v1/pauses', body)
  const shown = { kind: 'origin', name: 'https://api.example.com', reason: 'they asked', pausedBy: expect.any(String) }
  expect(made).toMatchObject({ status: 201, body: shown })
  expect(await t.call('POST /v1/pauses', body)).toMatchObject({ status: 200, body: { id: made.body.id } })
  expect((await t.call('GET /v1/pauses')).body).toMatchObject({ items: [shown] })
  expect((await t.call(`DELETE /v1/pauses/${made.body.id}`)).status).toBe(204)
  expect((await t.call(`DELETE /v1/pauses/${made.body.id}`)).status).toBe(204)
  expect((await t.call('GET /v1/pauses')).body).toEqual({ items: [] })
  expect(await t.call('DELETE /v1/pauses/nonsense')).toMatchObject({ status: 404, body: { code: 'not_found' } })
  expect(await t.call('POST /v1/pauses', { tenant: true, key: 'a' })).toMatchObject({ status: 422 })
})

test('a full queue answers 429 with Retry-After, which limit it is and how many wait; nothing is stored', async () => {
  const t = await setup()
  const queue = { queue: 'full', payload: 1 }
  expect(
    await t.call('PUT /v1/queues/full', { maxDepth: 2, maxAge: 'PT5M', defaults: { jitter: 'PT5S' } }),
  ).toMatchObject({ status: 200, body: { maxDepth: 2, maxAgeMs: 300_000, defaults: { jitterMs: 5_000 } } })
  await expect
    .poll(
      async () => {
        const { status } = await t.call('POST /v1/jobs/batch', { jobs: [queue, queue, queue] })
        return status
      },
      { timeout: 10_000 },
    )
    .toBe(429)
  const refused = await t.call<{ code: string; detail: string }>('POST /v1/jobs/batch', { jobs: Array(9).fill(queue) })
  expect(refused.body).toMatchObject({
    status: 429,
    code: 'queue_full',
    detail: expect.stringContaining('maxDepth is 2'),
  })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('a unique key keeps, replaces or rejects', async () => {
  const t = await setup()
  const job = { queue: 'unique', payload: 1, delay: '1h', unique: { key: 'k' } }
  const first = await t.call<{ jobId: string }>('POST /v1/jobs', job)
  expect(first.status).toBe(201)
  const { jobId } = first.body
  expect(await t.call('POST /v1/jobs', job)).toMatchObject({ status: 200, body: { jobId, deduplicated: true } })
  const replace = { ...job, payload: 2, unique: { key: 'k', onConflict: 'replace' } }
  expect(await t.call('POST /v1/jobs', replace)).toMatchObject({ status: 200, body: { jobId, replaced: true } })
  const reject = { ...job, unique: { key: 'k', onConflict: 'reject' } }
  expect((await t.call('POST /v1/jobs', reject)).body).toMatchObject({ status: 409, code: 'unique_conflict' })
  expect((await t.call(`GET /v1/jobs/${jobId}`)).body).toMatchObject({ version: 2, payload: 2, unique: { key: 'k' } })
})
