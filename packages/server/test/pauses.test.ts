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
        const { status } = await t.call('POST /v1/jobs/batch', { jobs: [queue, queue] })
        return status
      },
      { timeout: 10_000 },
    )
    .toBe(429)
  const refused = await t.call<{ code: string; detail: string }>('POST /v1/jobs', queue)
  expect(refused.body).toMatchObject({
    status: 429,
    code: 'queue_full',
    detail: expect.stringContaining('maxDepth is 2'),
  })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  // What never fits is no matter of waiting.
  const never = await t.call<{ detail: string }>('POST /v1/jobs/batch', { jobs: Array(9).fill(queue) })
  expect(never).toMatchObject({ status: 422, body: { detail: expect.stringContaining('send at most 2 of them') } })
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

test("an operator's pause is ended by an operator alone, and leaves the tenant's own pause as it is", async () => {
  const t = await setup()
  const operator = t.call
  const ofTenant = { tenantId: t.tenantId, name: 'own', scopes: ['write', 'read'] }
  const call = t.as((await operator<{ key: string }>('POST /v1/api-keys', ofTenant)).body.key)
  await call('PUT /v1/queues/work', {})
  const { jobId } = (await call<{ jobId: string }>('POST /v1/jobs', { queue: 'work', cron: '0 0 * * *' })).body
  for (const body of [{ tenant: true }, { key: 'k' }, { origin: 'https://api.example.com' }]) {
    const { id } = (await operator<Pause>('POST /v1/pauses', { ...body, reason: 'unpaid' })).body
    const refused = await call(`DELETE /v1/pauses/${id}`)
    expect(refused).toMatchObject({ status: 403, body: { code: 'forbidden' } })
    expect(refused.body.detail).toMatch(/was paused by an operator .*"admin".*: only an operator may end that$/)
    const own = await call<Pause & { pausedBy: string }>('POST /v1/pauses', body)
    expect(own).toMatchObject({ status: 200, body: { id, pausedBy: expect.stringMatching(/^admin, bk_/) } })
    expect((await operator(`DELETE /v1/pauses/${id}`)).status).toBe(204)
    const left = { id, pausedBy: own.body.pausedBy.slice('admin, '.length) }
    expect((await call('GET /v1/pauses')).body.items).toEqual([expect.objectContaining(left)])
    // An operator who comes second is not shut out by the tenant either.
    await operator('POST /v1/pauses', body)
    expect((await call(`DELETE /v1/pauses/${id}`)).status).toBe(403)
    await operator(`DELETE /v1/pauses/${id}`)
    expect((await call(`DELETE /v1/pauses/${id}`)).status).toBe(204)
    expect((await call('GET /v1/pauses')).body.items).toEqual([])
  }
  for (const [path, isPaused] of [
    ['/v1/queues/work', { paused: true }],
    [`/v1/jobs/${jobId}`, { status: 'paused' }],
  ] as const) {
    await operator(`POST ${path}/pause`, {})
    expect(await call(`POST ${path}/resume`, {})).toMatchObject({ status: 403, body: { code: 'forbidden' } })
    await call(`POST ${path}/pause`, {})
    await operator(`POST ${path}/resume`, {})
    expect((await call(`GET ${path}`)).body).toMatchObject(isPaused)
    expect((await call(`POST ${path}/resume`, {})).status).toBe(200)
    expect((await call(`GET ${path}`)).body).not.toMatchObject(isPaused)
  }
})

test('what is wrong with a limit, a pause or a batch is said with what would be right', async () => {
  const t = await setup()
  const unique = { key: 'once', onConflict: 'reject' }
  const said = async (line: string, body: unknown) => (await t.call<{ detail: string }>(line, body)).body.detail
  expect(await said('PUT /v1/queues/q', { maxRunning: 0 })).toMatch(
    /^maxRunning: must be a whole number from 1 to \d+, not 0$/,
  )
  expect(await said('POST /v1/pauses', { queue: 'q' })).toContain('POST /v1/queues/{queue}/pause')
  expect(await said('POST /v1/pauses', { tenant: 'other' })).toBe('tenant: must be true, not "other"')
  expect(await said('POST /v1/jobs/batch', { jobs: [] })).toBe('jobs: must be a list of 1 to 10000 jobs')
  expect(await said('POST /v1/jobs', { queue: 'q', payload: 1, after: { jobs: [] } })).toContain('not an empty one')
  const twice = Array(2).fill({ queue: 'q', payload: 1, unique })
  expect(await said('POST /v1/jobs/batch', { jobs: twice })).toContain(
    'job 0 of this call has the unique key "once" too',
  )
})
