import type { JobInput } from '@belfry/engine'
import type { Static } from 'typebox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Api, type Call, startApi } from '../../test/api.ts'
import { describedJob } from '../schemas/job.ts'
import { jobInput } from '../schemas/job-input.ts'

let api: Api
let call: Call

beforeAll(async () => {
  api = await startApi()
  call = api.call
})
afterAll(() => api.stop())

const LATER = '2096-01-01T00:00:00Z'

async function create(body: object): Promise<string> {
  const answer = await call<{ jobId: string }>('POST /v1/jobs', body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.jobId
}

test('the flat sketch works as it stands: create with a key, the same again, cancel', async () => {
  const sketch = { runAt: LATER, payloadRef: 'elsewhere/1', idempotencyKey: 'sketch-1' }
  const first = await call<{ jobId: string }>('POST /v1/jobs', sketch)
  expect(first.status).toBe(201)
  expect(first.body).toEqual({
    jobId: expect.any(String),
    status: 'active',
    nextRunAt: '2096-01-01T00:00:00.000Z',
    understoodAs: expect.stringContaining('2096'),
    expression: LATER,
    timezone: 'UTC',
    times: [{ utc: LATER, local: '2096-01-01T00:00:00+00:00' }],
  })
  expect(first.headers.get('location')).toBe(`/v1/jobs/${first.body.jobId}`)
  const again = await call('POST /v1/jobs', sketch)
  expect(again.status).toBe(200)
  expect(again.body).toMatchObject({ jobId: first.body.jobId, deduplicated: true })
  const { runAt, payloadRef } = sketch
  const byHeader = await call('POST /v1/jobs', { runAt, payloadRef }, { 'idempotency-key': '"sketch-1"' })
  expect([byHeader.status, byHeader.body.jobId]).toEqual([200, first.body.jobId])
  const other = await call('POST /v1/jobs', { ...sketch, payloadRef: 'elsewhere/2' })
  expect([other.status, other.body.code]).toEqual([422, 'idempotency_mismatch'])
  const canceled = await call(`POST /v1/jobs/${first.body.jobId}/cancel`)
  expect([canceled.status, canceled.body]).toEqual([200, { status: 'canceled' }])
})

test('a job with a cron and no target goes to the queue default, and is read as it was written', async () => {
  const jobId = await create({
    cron: '0 9 * * 1-5',
    timezone: 'Europe/Berlin',
    payloadRef: 'x',
    retry: { maxAttempts: 2 },
    timeout: '90s',
  })
  const read = await call(`GET /v1/jobs/${jobId}`)
  expect(read.headers.get('etag')).toBe('"1"')
  expect(read.body).toMatchObject({
    jobId,
    queue: 'default',
    status: 'active',
    schedule: { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' },
    retry: { maxAttempts: 2 },
    timeout: 'PT1M30S',
    http: null,
    lastRun: null,
    version: 1,
  })
  expect(Object.keys(read.body).sort()).toEqual(Object.keys(describedJob.properties).sort())
})

test('an HTTP job is stored, read back and told from one for workers', async () => {
  const http = { url: 'https://example.com/a', headers: { 'x-key': '{{secret:a}}' }, body: { a: [1] } }
  const jobId = await create({ every: '1h', startAt: LATER, http })
  expect((await call(`GET /v1/jobs/${jobId}`)).body.http).toMatchObject(http)
})

test('a change names the version it was made for, and one that comes too late is refused', async () => {
  const jobId = await create({ cron: '@daily', queue: 'patch' })
  const done = await call(`PATCH /v1/jobs/${jobId}`, { priority: 7 }, { 'if-match': '"1"' })
  expect([done.status, done.body, done.headers.get('etag')]).toEqual([200, { version: 2 }, '"2"'])
  const late = await call(`PATCH /v1/jobs/${jobId}`, { priority: 8 }, { 'if-match': '"1"' })
  expect([late.status, late.body.code]).toEqual([412, 'version_mismatch'])
  const odd = await call(`PATCH /v1/jobs/${jobId}`, { priority: 8 }, { 'if-match': '1' })
  expect([odd.status, odd.body.code]).toEqual([422, 'invalid_request'])
  expect((await call(`PATCH /v1/jobs/${jobId}`, { priority: 9 }, { 'if-match': '*' })).status).toBe(200)
  const wrong = await call(`PATCH /v1/jobs/${jobId}`, { prority: 1 })
  expect(wrong.body).toMatchObject({ code: 'invalid_job', errors: [{ path: 'prority', suggestion: 'priority' }] })
  expect((await call(`GET /v1/jobs/${jobId}`)).body).toMatchObject({ priority: 9, version: 3 })
})

test('a job put by its name is made once, then changed, and left alone when nothing differs', async () => {
  const path = 'PUT /v1/jobs/by-name/nightly%20report'
  const made = await call(path, { cron: '@daily', queue: 'q' })
  expect([made.status, made.body.created, made.body.version]).toEqual([201, true, 1])
  const same = await call(path, { cron: '@daily', queue: 'q' })
  expect([same.status, same.body]).toEqual([200, { jobId: made.body.jobId, created: false, version: 1 }])
  const changed = await call(path, { cron: '@hourly', queue: 'q' })
  expect([changed.status, changed.body.version, changed.headers.get('etag')]).toEqual([200, 2, '"2"'])
})

test('the tenant is not the body’s to say', async () => {
  for (const [line, body, path] of [
    ['POST /v1/jobs', { queue: 'q', tenant: 'default' }, 'tenant'],
    ['PUT /v1/jobs/by-name/x', { queue: 'q', tenant: 'default' }, 'tenant'],
    ['POST /v1/jobs/batch', { jobs: [{ queue: 'q' }, { queue: 'q', tenant: 'default' }] }, 'jobs[1].tenant'],
  ] as const) {
    const answer = await call(line, body)
    expect([answer.status, answer.body.code, answer.body.errors], line).toEqual([
      422,
      'invalid_job',
      [{ path, message: expect.stringContaining('API key decides') }],
    ])
  }
})

test('a batch is all or nothing, and gives back the words that its jobs were called by', async () => {
  const jobs = [
    { ref: 'a', queue: 'batch', delay: '1h' },
    { queue: 'batch', delay: '1h' },
    { ref: 'c', queue: 'batch', delay: '1h' },
  ]
  const made = await call<{ jobs: { ref?: string; jobId: string }[] }>('POST /v1/jobs/batch', { jobs })
  expect(made.status).toBe(201)
  expect(made.body.jobs.map(({ ref }) => ref)).toEqual(['a', undefined, 'c'])
  const wrong = await call('POST /v1/jobs/batch', { jobs: [jobs[0], { queue: 'batch', crn: '* * * * *' }] })
  expect(wrong.body).toMatchObject({ code: 'invalid_job', errors: [{ path: 'jobs[1].crn', suggestion: 'cron' }] })
  const found = await call<{ items: { jobId: string }[] }>('GET /v1/jobs?queue=batch')
  expect(found.body.items.map(({ jobId }) => jobId).sort()).toEqual(made.body.jobs.map(({ jobId }) => jobId).sort())
})

test.each([
  [{}, 'jobs'],
  [{ jobs: [] }, 'jobs'],
  [{ jobs: {} }, 'jobs'],
  [{ job: [] }, 'job'],
  [{ jobs: [null] }, 'jobs[0]'],
  [{ jobs: [{ ref: 1, queue: 'q' }] }, 'jobs[0].ref'],
  [
    {
      jobs: [
        { ref: 'a', queue: 'q' },
        { ref: 'a', queue: 'q' },
      ],
    },
    'jobs[1].ref',
  ],
  [{ jobs: [{ queue: 'q', after: { jobs: ['a'] } }] }, 'jobs[0].after.jobs[0]'],
  [{ jobs: Array.from({ length: 10_001 }, () => ({ queue: 'q' })) }, 'jobs'],
])('a batch that is not one is refused (%#)', async (body, path) => {
  const answer = await call<{ errors: { path: string }[] }>('POST /v1/jobs/batch', body)
  expect([answer.status, answer.body.errors[0]?.path]).toEqual([422, path])
})

test('a list goes on where the page before ended', async () => {
  const made = []
  for (let i = 0; i < 5; i++) made.push(await create({ queue: 'pages', delay: '1h' }))
  const seen: string[] = []
  let cursor = ''
  do {
    const page = await call<{ items: { jobId: string }[]; nextCursor: string | null }>(
      `GET /v1/jobs?queue=pages&limit=2${cursor}`,
    )
    seen.push(...page.body.items.map(({ jobId }) => jobId))
    cursor = page.body.nextCursor === null ? '' : `&cursor=${encodeURIComponent(page.body.nextCursor)}`
  } while (cursor !== '')
  expect(seen).toEqual(made.reverse())
  const bad = await call('GET /v1/jobs?cursor=nonsense')
  expect(bad.status).toBe(422)
})

test('jobs are found by label, by when they were created or run next, and by a piece of their name', async () => {
  const labels = { team: 'growth', tier: 'a=b' }
  const jobId = await create({ name: 'find me here', queue: 'found', runAt: LATER, labels })
  await create({ name: 'something else', queue: 'found', runAt: '2095-01-01T00:00:00Z', labels: { team: 'ops' } })
  for (const query of [
    'label=team%3Dgrowth',
    'label=tier',
    'nextRunFrom=2095-06-01T00:00:00Z',
    'text=d+me',
    `text=${jobId}`,
  ]) {
    const found = await call<{ items: { jobId: string }[] }>(`GET /v1/jobs?queue=found&${query}`)
    expect(
      found.body.items.map((item) => item.jobId),
      query,
    ).toEqual([jobId])
  }
  for (const query of [
    'createdTo=2020-01-01T00:00:00Z',
    'createdFrom=2095-01-01T00:00:00Z',
    'label=team%3Dx',
    'text=%25',
  ]) {
    expect((await call<{ items: [] }>(`GET /v1/jobs?queue=found&${query}`)).body.items, query).toEqual([])
  }
  expect((await call('GET /v1/jobs?createdFrom=yesterday')).status).toBe(422)
})

test('what is done to all jobs of a filter is shown first and then done', async () => {
  const ids = [await create({ queue: 'many', cron: '@daily' }), await create({ queue: 'many', cron: '@daily' })]
  const filter = { queue: 'many' }
  const shown = await call('POST /v1/jobs/actions', { filter, action: 'pause', dryRun: true })
  expect(shown.body).toEqual({ count: 2, jobIds: expect.arrayContaining(ids), refused: [], nextCursor: null })
  expect((await call(`GET /v1/jobs/${ids[0]}`)).body.status).toBe('active')
  await call('POST /v1/jobs/actions', { filter, action: 'pause', reason: 'moving' })
  expect((await call(`GET /v1/jobs/${ids[0]}`)).body).toMatchObject({ status: 'paused', pausedReason: 'moving' })
  expect((await call('POST /v1/jobs/actions', { filter, action: 'cancel' })).body.count).toBe(2)
  const late = await call('POST /v1/jobs/actions', { filter, action: 'resume' })
  expect(late.body).toMatchObject({ count: 0, refused: [{ code: 'already_finished' }, { code: 'already_finished' }] })
  expect((await call('POST /v1/jobs/actions', { filter: {}, action: 'cancel' })).status).toBe(422)
})

test('a trigger may have a payload of its own, which its run shows', async () => {
  const jobId = await create({ queue: 'triggered', cron: '@yearly', payload: 1 })
  const trigger = async (body: object) => (await call<{ runId: string }>(`POST /v1/jobs/${jobId}/trigger`, body)).body
  const { runId } = await trigger({ payload: { to: 'ada' } })
  expect((await call(`GET /v1/runs/${runId}`)).body).toMatchObject({ cause: 'trigger', payload: { to: 'ada' } })
  expect(await trigger({ payload: 2 })).toMatchObject({ status: 409, code: 'overlap' })
  expect(await trigger({ overlap: 'allow' })).toMatchObject({ runId: expect.any(String) })
  expect(await trigger({ overlap: 'maybe' })).toMatchObject({ status: 422, errors: [{ path: 'overlap' }] })
  expect(await trigger({ paylod: 2 })).toMatchObject({ status: 422, errors: [{ suggestion: 'payload' }] })
})

test('a trigger that is to wait says so, and its run names what it waits for', async () => {
  const jobId = await create({ queue: 'triggered', cron: '@yearly', overlap: 'buffer_one' })
  const trigger = async (body: object = {}) =>
    (await call<{ runId: string; status: string }>(`POST /v1/jobs/${jobId}/trigger`, body)).body
  const first = await trigger()
  expect(first.status).toBe('ready')
  const second = await trigger()
  expect(second.status).toBe('blocked')
  expect(await trigger()).toMatchObject({ status: 409, code: 'overlap' })
  expect((await call(`GET /v1/runs/${second.runId}`)).body).toMatchObject({ status: 'blocked', blockedBy: first.runId })
  const { items } = (await call<{ items: object[] }>(`GET /v1/runs?status=blocked`)).body
  expect(items).toMatchObject([{ id: second.runId }])
})

test('a paused job is resumed with what it missed, or as ever', async () => {
  const jobId = await create({ queue: 'triggered', cron: '@yearly' })
  await call(`POST /v1/jobs/${jobId}/pause`, {})
  const resumed = await call(`POST /v1/jobs/${jobId}/resume`, { missed: 'all' })
  expect(resumed.body).toMatchObject({ status: 422, errors: [{ path: 'missed' }] })
  expect((await call(`POST /v1/jobs/${jobId}/resume`, { missed: 'catch_up' })).body).toEqual({ status: 'active' })
})

test('a trigger makes a run that the job lists, and every change says who made it', async () => {
  const jobId = await create({ queue: 'triggered', cron: '@yearly' })
  const { runId } = (await call<{ runId: string }>(`POST /v1/jobs/${jobId}/trigger`, {})).body
  const runs = await call<{ items: { id: string }[] }>(`GET /v1/jobs/${jobId}/runs`)
  expect(runs.body.items.map(({ id }) => id)).toEqual([runId])
  await call(`POST /v1/jobs/${jobId}/pause`, { reason: 'later' })
  await call(`POST /v1/jobs/${jobId}/resume`)
  const changes = await call<{ items: { action: string; actor: string }[] }>(`GET /v1/jobs/${jobId}/changes`)
  expect(changes.body.items.map(({ action, actor }) => `${action} by ${actor}`)).toEqual(
    ['create', 'trigger', 'pause', 'resume'].map((action) => `${action} by admin`),
  )
})

test('a deleted job is gone, and so is one that never was', async () => {
  const jobId = await create({ queue: 'gone', cron: '@daily' })
  const done = await call(`DELETE /v1/jobs/${jobId}`)
  expect([done.status, done.body]).toEqual([204, ''])
  for (const id of [jobId, '019a2f5e-7c10-7a3b-9d55-3f1c2b4a6d70', 'nonsense', '%00']) {
    for (const line of [
      `GET /v1/jobs/${id}`,
      `GET /v1/jobs/${id}/runs`,
      `GET /v1/jobs/${id}/changes`,
      `DELETE /v1/jobs/${id}`,
      `POST /v1/jobs/${id}/cancel`,
      `POST /v1/jobs/${id}/trigger`,
    ]) {
      const { status } = await call(line)
      expect(id === '%00' ? [404, 422] : [404], line).toContain(status)
    }
  }
})

test('the schema of a job and the engine know the same fields', async () => {
  type Fields<Shape> = keyof NonNullable<Shape>
  type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
  type Written = Static<typeof jobInput>
  // Checked by the compiler; there is nothing to run.
  const same: [
    Same<keyof Written, Exclude<keyof JobInput, 'tenant'>>,
    Same<Fields<Written['http']>, Fields<JobInput['http']>>,
    Same<Fields<NonNullable<Written['http']>['auth']>, Fields<NonNullable<JobInput['http']>['auth']>>,
    Same<Fields<Written['retry']>, Fields<JobInput['retry']>>,
    Same<Fields<NonNullable<Written['retry']>['backoff']>, Fields<NonNullable<JobInput['retry']>['backoff']>>,
    Same<Fields<Written['catchUp']>, Fields<JobInput['catchUp']>>,
  ] = [true, true, true, true, true, true]
  expect(same).not.toContain(false)
  const unknown = await call<{ errors: { path: string; message: string }[] }>(
    'POST /v1/jobs',
    Object.fromEntries(Object.keys(jobInput.properties).map((name) => [name, { nonsense: true }])),
  )
  expect(unknown.status).toBe(422)
  expect(unknown.body.errors.filter(({ message }) => /not a field of a job|not supported/.test(message))).toEqual([])
})
