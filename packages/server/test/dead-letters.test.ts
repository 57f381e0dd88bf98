import { expect, test } from 'vitest'
import { oneNodeForAll } from './api.ts'

const start = oneNodeForAll()

interface DeadLetter {
  runId: string
  jobId: string
  failureClass: string
  error: string
}

async function setup({ letters }: { letters: number }) {
  const api = await start()
  let works = false
  api.handle('moody', () => (works ? 'fine' : Promise.reject(new Error('broken'))))
  const jobs = Array.from({ length: letters }, () => ({ queue: 'moody', payload: 1, retry: { maxAttempts: 1 } }))
  await api.call('POST /v1/jobs/batch', { jobs })
  const list = async () => (await api.call<{ items: DeadLetter[] }>('GET /v1/dead-letters')).body.items
  await expect.poll(async () => (await list()).length).toBe(letters)
  const mend = () => {
    works = true
  }
  return { ...api, list, mend, runIds: (await list()).map(({ runId }) => runId) }
}

test('a dead letter says what it died of, and can be dropped', async () => {
  const t = await setup({ letters: 1 })
  const [runId] = t.runIds
  const { status, body } = await t.call<DeadLetter>(`GET /v1/dead-letters/${runId}`)
  expect(status).toBe(200)
  expect(body).toMatchObject({ runId, failureClass: 'handler_error', error: 'Error: broken' })
  expect((await t.call(`DELETE /v1/dead-letters/${runId}`)).status).toBe(204)
  expect((await t.call(`DELETE /v1/dead-letters/${runId}`)).body).toMatchObject({ status: 404, code: 'not_found' })
  expect(await t.list()).toEqual([])
  expect((await t.call(`GET /v1/runs/${runId}`)).body).toMatchObject({ status: 'failed' })
})

test('a dry run of a redrive says what it would open, and opens nothing', async () => {
  const t = await setup({ letters: 3 })
  const filter = { failureClass: 'handler_error', queue: 'moody' }
  const dry = await t.call<{ count: number; runIds: string[] }>('POST /v1/dead-letters/redrive', {
    filter,
    dryRun: true,
  })
  expect(dry.status).toBe(200)
  expect(dry.body.count).toBe(3)
  expect([...dry.body.runIds].sort()).toEqual([...t.runIds].sort())
  expect(await t.list()).toHaveLength(3)
  const none = await t.call('POST /v1/dead-letters/redrive', { filter: { queue: 'other' } })
  expect(none.body).toEqual({ count: 0, runIds: [] })
})

test('what is redriven by filter or by ids runs again', async () => {
  const t = await setup({ letters: 3 })
  t.mend()
  const [first, ...rest] = t.runIds as [string, string, string]
  expect((await t.call('POST /v1/dead-letters/redrive', { runIds: [first] })).body).toEqual({
    count: 1,
    runIds: [first],
  })
  expect((await t.call('POST /v1/dead-letters/redrive', { filter: {} })).body).toMatchObject({ count: 2 })
  for (const runId of [first, ...rest]) {
    const { body } = await t.call(`GET /v1/runs/${runId}?waitMs=10000`)
    expect(body).toMatchObject({ status: 'succeeded', attempt: 2 })
  }
  expect(await t.list()).toEqual([])
})

test('what is redriven at a rate waits for its time', async () => {
  const t = await setup({ letters: 3 })
  t.mend()
  expect((await t.call('POST /v1/dead-letters/redrive', { filter: {}, rate: 0.01 })).body).toMatchObject({ count: 3 })
  const waiting = async () => (await t.call<{ items: object[] }>('GET /v1/runs?status=waiting')).body.items.length
  await expect.poll(waiting).toBe(2)
  expect((await t.call('POST /v1/dead-letters/redrive', { filter: {}, rate: 0 })).body).toMatchObject({ status: 422 })
})

test('a redrive says exactly what it means', async () => {
  const t = await setup({ letters: 0 })
  const redrive = async (body: object) => (await t.call('POST /v1/dead-letters/redrive', body)).body
  const refusal = { status: 422, code: 'invalid_request' }
  expect(await redrive({})).toMatchObject(refusal)
  expect(await redrive({ runIds: ['x'], filter: {} })).toMatchObject(refusal)
  expect(await redrive({ runIds: [] })).toMatchObject(refusal)
  expect(await redrive({ filter: { failureClas: 'timeout' } })).toMatchObject({
    ...refusal,
    errors: [{ path: 'filter.failureClas', suggestion: 'failureClass' }],
  })
})
