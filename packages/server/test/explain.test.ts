import { expect, test } from 'vitest'
import { oneNodeForAll } from './api.ts'

const setup = oneNodeForAll()
const HOUR = 3_600_000

test('a run, a time to come and a time that is none are explained over HTTP, each in a sentence', async () => {
  const api = await setup()
  api.handle('mail', () => 'sent')
  const { body: job } = await api.call<{ jobId: string; nextRunAt: string }>('POST /v1/jobs', {
    queue: 'mail',
    payload: 1,
  })
  const status = async () => (await api.call<{ status: string }>(`GET /v1/jobs/${job.jobId}`)).body.status
  await expect.poll(status).toBe('succeeded')
  const ran = await api.call(`GET /v1/jobs/${job.jobId}/explain?at=${job.nextRunAt}`)
  expect(ran).toMatchObject({
    status: 200,
    body: {
      jobId: job.jobId,
      at: job.nextRunAt,
      nominalAt: job.nextRunAt,
      verdict: 'ran',
      version: 1,
      run: {
        status: 'succeeded',
        attempts: [{ number: 1, status: 'succeeded', finishedAt: expect.stringMatching(/Z$/) }],
      },
      waits: null,
      nearest: null,
      sentence: expect.stringMatching(/^The run of .* succeeded at its first attempt, begun \d+ ms after its time\.$/),
    },
  })
  const { body: daily } = await api.call<{ jobId: string; nextRunAt: string }>('POST /v1/jobs', {
    queue: 'idle',
    cron: '30 9 * * *',
    timezone: 'Europe/Berlin',
    payload: 1,
  })
  const at = Date.parse(daily.nextRunAt)
  const explain = async (query: string) => (await api.call(`GET /v1/jobs/${daily.jobId}/explain?${query}`)).body
  expect(await explain(`at=${daily.nextRunAt}`)).toMatchObject({
    verdict: 'will_run',
    local: expect.stringMatching(/T09:30:00\+0[12]:00$/),
    timezone: 'Europe/Berlin',
    run: null,
  })
  expect(await explain(`at=${new Date(at + HOUR).toISOString()}`)).toMatchObject({
    verdict: 'never',
    reason: 'expression',
    nominalAt: null,
    nearest: { before: daily.nextRunAt, after: expect.any(String) },
  })
})

test('a range is a list with pages', async () => {
  const api = await setup()
  const { body: job } = await api.call<{ jobId: string; nextRunAt: string }>('POST /v1/jobs', {
    queue: 'idle',
    cron: '0 * * * *',
    payload: 1,
  })
  const from = Date.parse(job.nextRunAt)
  const query = `from=${new Date(from).toISOString()}&to=${new Date(from + 3 * HOUR).toISOString()}&limit=2`
  interface Body {
    items: { verdict: string; nominalAt: string }[]
    nextCursor: string | null
  }
  const { body: first } = await api.call<Body>(`GET /v1/jobs/${job.jobId}/explain?${query}`)
  const { body: second } = await api.call<Body>(`GET /v1/jobs/${job.jobId}/explain?${query}&cursor=${first.nextCursor}`)
  expect([...first.items, ...second.items].map(({ nominalAt }) => Date.parse(nominalAt) - from)).toEqual([
    0,
    HOUR,
    2 * HOUR,
  ])
  expect(first.items[0]).toMatchObject({ verdict: 'will_run', dueAt: job.nextRunAt })
  expect(second.nextCursor).toBeNull()
})

test('a question that is none is refused with what would be one', async () => {
  const api = await setup()
  const { body: job } = await api.call<{ jobId: string }>('POST /v1/jobs', {
    queue: 'idle',
    cron: '@daily',
    payload: 1,
  })
  const ask = async (query: string) => (await api.call(`GET /v1/jobs/${job.jobId}/explain?${query}`)).body
  const instant = '2026-01-01T00:00:00Z'
  expect(await ask('')).toMatchObject({ at: expect.stringMatching(/:00\.000Z$/), verdict: expect.any(String) })
  expect(await ask(`at=${instant}&from=${instant}`)).toMatchObject({ status: 422, errors: [{ path: 'at' }] })
  expect(await ask(`from=${instant}`)).toMatchObject({ status: 422, errors: [{ path: 'to' }] })
  expect(await ask(`from=${instant}&to=${instant}`)).toMatchObject({ status: 422, errors: [{ path: 'to' }] })
  expect(await ask('at=yesterday')).toMatchObject({ status: 422, errors: [{ path: 'at' }] })
})

test('the forecast counts the coming runs of the tenant, by queue and by origin', async () => {
  const api = await setup()
  await api.call('POST /v1/jobs', { queue: 'mail', cron: '0 * * * *', payload: 1 })
  await api.call('POST /v1/jobs', { http: { url: 'https://shop.example:8443/hook' }, cron: '0 */2 * * *', payload: 1 })
  await api.call('POST /v1/jobs', { http: { url: 'https://Shop.example:8443/other' }, delay: '3h', payload: 1 })
  const { body: paused } = await api.call<{ jobId: string }>('POST /v1/jobs', {
    queue: 'mail',
    cron: '* * * * *',
    payload: 1,
  })
  await api.call(`POST /v1/jobs/${paused.jobId}/pause`)
  interface Body {
    total: number
    perMinute: number[]
    busiest: unknown[]
  }
  const from = Math.ceil(Date.now() / HOUR) * HOUR
  const range = `from=${new Date(from).toISOString()}&to=${new Date(from + 24 * HOUR).toISOString()}`
  const { status, body } = await api.call<Body>(`GET /v1/forecast?${range}`)
  expect(status).toBe(200)
  expect(body).toMatchObject({
    timers: 3,
    total: 24 + 12 + 1,
    isComplete: true,
    queues: [
      { name: 'mail', total: 24, busiest: { runs: 1 } },
      { name: 'http', total: 13 },
    ],
    origins: [{ name: 'https://shop.example:8443', total: 13 }],
  })
  expect(body.busiest[0]).toMatchObject({ runs: 2, withoutJitter: 2 })
  expect(body.perMinute).toHaveLength(24 * 60)
  expect(body.perMinute.reduce((sum, runs) => sum + runs)).toBe(37)
  const other = await setup()
  expect((await other.call('GET /v1/forecast')).body).toMatchObject({ total: 0, queues: [], origins: [] })
  expect((await other.call<Body>(`GET /v1/forecast?of=installation&${range}`)).body.total).toBeGreaterThanOrEqual(37)
  const week = new Date(Date.now() + 8 * 24 * HOUR).toISOString()
  expect((await api.call(`GET /v1/forecast?to=${week}`)).body).toMatchObject({ status: 422, errors: [{ path: 'to' }] })
})
