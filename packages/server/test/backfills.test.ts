import { expect, test } from 'vitest'
import { oneNodeForAll } from './api.ts'

const start = oneNodeForAll()
const HOUR = 3_600_000

interface Backfill {
  backfillId: string
  status: string
  position: string
  counts: Record<string, number>
  notes: string[]
}

/** A job that fires at every full hour, and the full hours before now. */
async function setup(more: object = {}) {
  const api = await start()
  const { body } = await api.call<{ jobId: string }>('POST /v1/jobs', { queue: 'old', cron: '0 * * * *', ...more })
  const now = Math.floor(Date.now() / HOUR) * HOUR
  const hour = (n: number) => new Date(now + n * HOUR).toISOString()
  return { ...api, hour, jobId: body.jobId, path: `/v1/jobs/${body.jobId}/backfill` }
}

test('a dry run answers what a backfill would do; then it is made, watched, listed, and its runs name it', async () => {
  const t = await setup()
  const body = { from: t.hour(-3), to: t.hour(0) }
  const times = [t.hour(-3), t.hour(-2), t.hour(-1)]
  const dry = await t.call(`POST ${t.path}`, { ...body, dryRun: true })
  expect(dry.status).toBe(200)
  expect(dry.body).toEqual({ count: 3, leftOut: 0, times: { first: times, last: times }, ...body, notes: [] })
  expect((await t.call(`GET ${t.path}s`)).body).toMatchObject({ items: [], nextCursor: null })

  const seen: string[] = []
  t.handle('old', (run) => void seen.push(run.nominalAt.toISOString()))
  const made = await t.call<Backfill>(`POST ${t.path}`, body)
  expect(made.status).toBe(201)
  expect(made.body).toMatchObject({ jobId: t.jobId, status: 'running', concurrency: 1, notes: [], ...body })
  const { backfillId } = made.body
  expect(made.headers.get('location')).toBe(`/v1/backfills/${backfillId}`)
  const get = async () => (await t.call<Backfill>(`GET /v1/backfills/${backfillId}`)).body
  await expect.poll(async () => (await get()).status).toBe('completed')
  expect(seen).toEqual(times)
  const { notes: _, ...view } = { ...made.body, endedAt: expect.any(String) }
  const counts = { total: 3, created: 3, leftOut: 0, running: 0, succeeded: 3, failed: 0, canceled: 0 }
  expect(await get()).toMatchObject({ ...view, status: 'completed', position: body.to, counts })
  expect((await t.call<{ items: Backfill[] }>(`GET ${t.path}s`)).body.items).toEqual([await get()])
  const runs = await t.call<{ items: { id: string; cause: string }[] }>(`GET /v1/jobs/${t.jobId}/runs`)
  expect(runs.body.items.map(({ cause }) => cause)).toEqual(['backfill', 'backfill', 'backfill'])
  const run = await t.call(`GET /v1/runs/${runs.body.items[0]?.id}`)
  expect(run.body).toMatchObject({ cause: 'backfill', backfillId, status: 'succeeded' })
  expect((await t.call(`POST /v1/backfills/${backfillId}/cancel`)).body).toMatchObject({ code: 'already_finished' })
  expect((await t.call(`POST ${t.path}`, { ...body, dryRun: true })).body).toMatchObject({ count: 0, leftOut: 3 })
})

test('a backfill is canceled as a unit, and again with the same answer', async () => {
  const t = await setup({ queue: 'nobody', overlap: 'allow' })
  const made = await t.call<Backfill>(`POST ${t.path}`, { from: t.hour(-24), to: t.hour(0), concurrency: 4 })
  const path = `/v1/backfills/${made.body.backfillId}`
  const created = async () => (await t.call<Backfill>(`GET ${path}`)).body.counts.created
  await expect.poll(created).toBe(4)
  const canceled = await t.call<Backfill>(`POST ${path}/cancel`)
  expect(canceled.status).toBe(200)
  const counts = { total: 24, created: 4, leftOut: 0, running: 0, succeeded: 0, failed: 0, canceled: 4 }
  expect(canceled.body).toMatchObject({ status: 'canceled', counts })
  expect(canceled.body.position > t.hour(-21)).toBe(true)
  expect((await t.call(`POST ${path}/cancel`)).body).toEqual(canceled.body)
  const live = await t.call<{ items: { status: string }[] }>(`GET /v1/jobs/${t.jobId}/runs`)
  expect(live.body.items.map(({ status }) => status)).toEqual(Array(4).fill('canceled'))
})

test('what cannot be backfilled is refused with a reason, and leaves nothing', async () => {
  const t = await setup()
  const [from, to] = [t.hour(-3), t.hour(0)]
  const ask = async (body: unknown) => (await t.call<Record<string, unknown>>(`POST ${t.path}`, body)).body
  expect(await ask(undefined)).toMatchObject({ status: 422, code: 'invalid_request' })
  expect(await ask({ from })).toMatchObject({ status: 422, errors: [{ path: 'to' }] })
  expect(await ask({ from, to, until: to })).toMatchObject({ status: 422, errors: [{ path: 'until' }] })
  expect(await ask({ from: 'monday', to })).toMatchObject({ status: 422, errors: [{ path: 'from' }] })
  expect(await ask({ from: to, to: from })).toMatchObject({ status: 422, errors: [{ path: 'to' }] })
  expect(await ask({ from, to, concurrency: 1_000 })).toMatchObject({ status: 422, errors: [{ path: 'concurrency' }] })
  expect(await ask({ from, to, confirmCount: 4 })).toMatchObject({ status: 422, errors: [{ path: 'confirmCount' }] })
  expect(await ask({ from: t.hour(2), to: t.hour(9) })).toMatchObject({ status: 422, errors: [{ path: 'from' }] })
  expect(await ask({ from: t.hour(-200_000), to })).toMatchObject({ status: 422, errors: [{ path: 'to' }] })
  expect(await ask({ from: t.hour(-20_000), to })).toMatchObject({ status: 422, errors: [{ path: 'confirmCount' }] })
  const once = await t.call<{ jobId: string }>('POST /v1/jobs', { queue: 'old', delay: '1d' })
  const ofOnce = await t.call(`POST /v1/jobs/${once.body.jobId}/backfill`, { from, to })
  expect(ofOnce.body).toMatchObject({ status: 422, code: 'invalid_argument' })
  expect((await t.call(`GET ${t.path}s`)).body).toMatchObject({ items: [] })
  await t.call(`POST /v1/jobs/${t.jobId}/cancel`)
  expect(await ask({ from, to })).toMatchObject({ status: 409, code: 'already_finished' })
  expect((await t.call('GET /v1/backfills/nonsense')).body).toMatchObject({ status: 404, code: 'not_found' })
})
