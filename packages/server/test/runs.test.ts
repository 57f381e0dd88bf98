import { expect, onTestFinished, test } from 'vitest'
import { oneNodeForAll, startApi } from './api.ts'

interface Run {
  id: string
  status: string
  attempt: number
  queue: string
  failureClass: string | null
  finishedAt: string | null
  attempts: { number: number; status: string; error: string | null }[]
}
interface Page<Item> {
  items: Item[]
  nextCursor: string | null
}

const start = oneNodeForAll()

async function startAlone() {
  const api = await startApi()
  onTestFinished(() => api.stop())
  return { ...api, handle: api.belfry.handle.bind(api.belfry) }
}

async function setup(starting: typeof start | typeof startAlone = start) {
  const api = await starting()
  const started = async (job: object) => {
    const { body } = await api.call<{ jobId: string }>('POST /v1/jobs', { payload: null, ...job })
    const { items } = (await api.call<Page<Run>>(`GET /v1/jobs/${body.jobId}/runs`)).body
    return { jobId: body.jobId, runId: items[0]?.id ?? '' }
  }
  return { ...api, started }
}

test('whoever waits for a run is answered as soon as it has finished', async () => {
  const t = await setup()
  let finish: (value: unknown) => void = () => {}
  const perform = () =>
    new Promise((resolve) => {
      finish = resolve
    })
  t.handle('slow', perform)
  const { runId } = await t.started({ queue: 'slow' })
  await expect.poll(async () => (await t.call<Run>(`GET /v1/runs/${runId}`)).body.status).toBe('running')
  const waiting = t.call<Run>(`GET /v1/runs/${runId}?waitMs=30000`)
  finish({ sent: 3 })
  const { body } = await waiting
  expect(body).toMatchObject({ id: runId, status: 'succeeded', result: { sent: 3 }, queue: 'slow' })
  expect(body.attempts).toMatchObject([{ number: 1, status: 'succeeded' }])
})

test('whoever waits for a run that does not finish is answered after the time with how it is', async () => {
  const t = await setup()
  const { runId } = await t.started({ queue: 'nobody' })
  const { status, body } = await t.call<Run>(`GET /v1/runs/${runId}?waitMs=60`)
  expect({ status, run: body.status }).toEqual({ status: 200, run: 'ready' })
  expect((await t.call(`GET /v1/runs/${runId}?waitMs=30001`)).status).toBe(422)
})

test('a node that stops does not wait for those who wait', async () => {
  const t = await setup(startAlone)
  const { runId } = await t.started({ queue: 'nobody' })
  const waiting = t.call<Run>(`GET /v1/runs/${runId}?waitMs=30000`)
  // It has arrived when a later request has been answered.
  await t.call('GET /v1/whoami')
  const began = performance.now()
  await t.stopServer()
  expect((await waiting).body.status).toBe('ready')
  expect(performance.now() - began).toBeLessThan(5_000)
})

test('runs are listed by status, job, queue, failure class and time', async () => {
  const t = await setup()
  t.handle('good', () => null)
  t.handle('bad', () => Promise.reject(new Error('no')))
  const good = await t.started({ queue: 'good' })
  const bad = await t.started({ queue: 'bad', retry: { maxAttempts: 1 } })
  const waits = await t.started({ queue: 'nobody' })
  for (const { runId } of [good, bad]) await t.call(`GET /v1/runs/${runId}?waitMs=10000`)
  const ids = async (query: string) => {
    const { status, body } = await t.call<Page<Run>>(`GET /v1/runs?${query}`)
    expect(status, JSON.stringify(body)).toBe(200)
    return body.items.map(({ id }) => id)
  }
  expect(await ids('')).toEqual(expect.arrayContaining([good.runId, bad.runId, waits.runId]))
  expect(await ids('status=succeeded')).toEqual([good.runId])
  expect(await ids('status=ready')).toEqual([waits.runId])
  expect(await ids(`job=${bad.jobId}`)).toEqual([bad.runId])
  expect(await ids('queue=nobody')).toEqual([waits.runId])
  expect(await ids('failureClass=handler_error')).toEqual([bad.runId])
  expect(await ids('from=2020-01-01T00:00:00Z&to=2021-01-01T00:00:00Z')).toEqual([])
  expect(await ids('from=2020-01-01T00:00:00Z&status=failed')).toEqual([bad.runId])
  expect((await t.call('GET /v1/runs?status=done')).body).toMatchObject({ status: 422, code: 'invalid_request' })
  expect((await t.call('GET /v1/runs?from=tomorrow')).body).toMatchObject({ status: 422, code: 'invalid_request' })
})

test('pages of runs join without a gap', async () => {
  const t = await setup()
  const jobs = Array.from({ length: 7 }, () => ({ queue: 'nobody', payload: 1 }))
  await t.call('POST /v1/jobs/batch', { jobs })
  const seen: string[] = []
  let cursor: string | null = ''
  for (let pages = 0; cursor !== null && pages < 9; pages++) {
    const page: Page<Run> = (await t.call<Page<Run>>(`GET /v1/runs?limit=3${cursor && `&cursor=${cursor}`}`)).body
    seen.push(...page.items.map(({ id }) => id))
    cursor = page.nextCursor
  }
  expect(new Set(seen).size).toBe(7)
  expect(seen).toHaveLength(7)
})

test('a waiting run can be canceled once, and a failed one retried', async () => {
  const t = await setup()
  const { runId } = await t.started({ queue: 'nobody' })
  expect((await t.call(`POST /v1/runs/${runId}/cancel`)).body).toEqual({ status: 'canceled' })
  expect((await t.call(`POST /v1/runs/${runId}/cancel`)).body).toMatchObject({ status: 409, code: 'already_finished' })
  expect((await t.call(`POST /v1/runs/${runId}/retry`)).body).toMatchObject({ status: 409, code: 'not_retryable' })

  let fails = true
  t.handle('moody', (run) => {
    run.log('trying')
    return fails ? Promise.reject(new Error('not yet')) : 'done'
  })
  const failing = await t.started({ queue: 'moody', retry: { maxAttempts: 1 } })
  await t.call(`GET /v1/runs/${failing.runId}?waitMs=10000`)
  fails = false
  expect((await t.call(`POST /v1/runs/${failing.runId}/retry`)).body).toEqual({ runId: failing.runId })
  const { body } = await t.call<Run>(`GET /v1/runs/${failing.runId}?waitMs=10000`)
  expect(body).toMatchObject({ status: 'succeeded', attempt: 2 })
  expect(body.attempts.map(({ error }) => error)).toEqual(['Error: not yet', null])
  const logs = async () => (await t.call<Page<object>>(`GET /v1/runs/${failing.runId}/logs`)).body.items
  await expect.poll(logs).toMatchObject([
    { attempt: 1, message: 'trying' },
    { attempt: 2, message: 'trying' },
  ])
})
