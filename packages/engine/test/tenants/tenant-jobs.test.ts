import { expect, test } from 'vitest'
import { HOUR, MINUTE } from '../behaviour/kit.ts'
import { refusalOf, startTenants } from './setup.ts'

const UNKNOWN = '019a8d3e-1f2a-7001-8abc-0123456789ab'
const HOSTILE = [
  '',
  'x',
  "' or 1=1",
  '../jobs',
  '\0',
  '\ud800',
  'a'.repeat(100_000),
  UNKNOWN.toUpperCase(),
  `${UNKNOWN}\n`,
]

test("another tenant's job is answered as one that does not exist, whatever is asked of it", async () => {
  const { own, other } = await startTenants()
  const { jobId: foreign } = await other.jobs.create({ name: 'theirs', queue: 'q', cron: '0 9 * * *' })
  const calls = {
    get: (id: string) => own.jobs.get(id),
    update: (id: string) => own.jobs.update(id, { priority: 7 }),
    delete: (id: string) => own.jobs.delete(id),
    cancel: (id: string) => own.jobs.cancel(id),
    pause: (id: string) => own.jobs.pause(id, { reason: 'r' }),
    resume: (id: string) => own.jobs.resume(id),
    trigger: (id: string) => own.jobs.trigger(id),
    changes: (id: string) => own.jobs.changes(id, {}),
  }
  for (const [name, call] of Object.entries(calls)) {
    const [theirs, none] = [await refusalOf(call(foreign)), await refusalOf(call(UNKNOWN))]
    expect(theirs.code, name).toBe('not_found')
    expect(theirs.message.replace(foreign, UNKNOWN), name).toBe(none.message)
    for (const hostile of HOSTILE)
      expect((await refusalOf(call(hostile))).code, `${name} ${hostile.slice(0, 20)}`).toBe('not_found')
  }
  expect((await own.jobs.list({})).items).toEqual([])
  expect((await own.runs.list({ jobId: foreign })).items).toEqual([])
  expect(await other.jobs.get(foreign)).toMatchObject({ status: 'active', version: 1 })
  expect((await other.jobs.changes(foreign, {})).items).toHaveLength(1)
})

test('a create says what became of it, for a repeated one too', async () => {
  const { kit, own } = await startTenants()
  const job = { queue: 'q', delay: '1h' }
  const first = await own.jobs.create(job, { idempotencyKey: 'k' })
  expect(first).toEqual({
    ...{ jobId: first.jobId, deduplicated: false, status: 'active' },
    nextRunAt: new Date(kit.clock.now() + HOUR),
    ...{ understoodAs: expect.stringContaining('01:00'), expression: '2026-01-01T01:00:00Z', timezone: 'UTC' },
    times: [{ utc: '2026-01-01T01:00:00Z', local: '2026-01-01T01:00:00+00:00' }],
  })
  expect(await own.jobs.create({ ...job, idempotencyKey: 'k' })).toEqual({ ...first, deduplicated: true })
  expect((await refusalOf(own.jobs.create({ ...job, idempotencyKey: 'a' }, { idempotencyKey: 'b' }))).code).toBe(
    'invalid_request',
  )
  expect(await own.jobs.get(first.jobId)).toMatchObject({ createdBy: 'bk_own', tenant: 'default' })
  await own.jobs.delete(first.jobId)
  expect(await own.jobs.create(job, { idempotencyKey: 'k' })).toMatchObject({ deduplicated: true, status: 'canceled' })
})

test("a job cannot be put among another tenant's, nor can the same key meet across tenants", async () => {
  const { own, other } = await startTenants()
  expect((await refusalOf(own.jobs.create({ queue: 'q', tenant: 'other' }))).code).toBe('invalid_job')
  const mine = await own.jobs.create({ name: 'n', queue: 'q', delay: '1h', idempotencyKey: 'k' })
  const theirs = await other.jobs.create({ name: 'n', queue: 'q', delay: '2h', idempotencyKey: 'k' })
  expect(theirs).toMatchObject({ deduplicated: false })
  expect(theirs.jobId).not.toBe(mine.jobId)
})

test('an update that expects another version changes nothing', async () => {
  const { own } = await startTenants()
  const { jobId } = await own.jobs.create({ queue: 'q', cron: '0 9 * * *' })
  expect(await own.jobs.update(jobId, { priority: 7 }, { ifVersion: 1 })).toEqual({ version: 2 })
  expect((await refusalOf(own.jobs.update(jobId, { priority: 1 }, { ifVersion: 1 }))).code).toBe('version_mismatch')
  const racing = await Promise.allSettled(
    [1, 2, 3].map((priority) => own.jobs.update(jobId, { priority }, { ifVersion: 2 })),
  )
  expect(racing.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect(await own.jobs.get(jobId)).toMatchObject({ version: 3, createdBy: 'bk_own' })
})

test('saying a job twice changes nothing, saying it differently makes a new version', async () => {
  const { kit, own } = await startTenants()
  for (const job of [
    { queue: 'q', cron: '0 9 * * *', timezone: 'Europe/Berlin', labels: { b: '2', a: '1' } },
    { queue: 'q', every: '10m', retry: { maxAttempts: 3 } },
    { queue: 'q', runAt: '2030-01-01T00:00:00Z', payload: { deep: [1, { x: null }] } },
  ]) {
    const name = JSON.stringify(job).slice(0, 60)
    const first = await own.jobs.upsert(name, job)
    expect(first).toMatchObject({ created: true, version: 1 })
    kit.clock.advance(3 * MINUTE)
    const reordered = Object.fromEntries(Object.entries(job).reverse())
    expect(await own.jobs.upsert(name, { ...reordered, name }), name).toEqual({ ...first, created: false })
    expect(await own.jobs.upsert(name, { ...job, priority: 9 })).toEqual({ ...first, created: false, version: 2 })
    expect(await own.jobs.get(first.jobId)).toMatchObject({ name, priority: 9, createdBy: 'bk_own' })
    // What is left out is taken away: the input is the whole job.
    expect(await own.jobs.upsert(name, job)).toMatchObject({ version: 3 })
    expect(await own.jobs.get(first.jobId)).toMatchObject({ priority: 5 })
    expect((await own.jobs.changes(first.jobId, {})).items.map(({ action }) => action)).toEqual([
      ...['create', 'update', 'update'],
    ])
  }
})

test('of many that say the same name at once, one creates', async () => {
  const { own, query } = await startTenants()
  for (let round = 0; round < 5; round++) {
    const job = { queue: 'q', cron: '0 9 * * *' }
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => own.jobs.upsert(`job ${round}`, { ...job, priority: i })),
    )
    expect(new Set(answers.map(({ jobId }) => jobId)).size).toBe(1)
    expect(answers.filter(({ created }) => created)).toHaveLength(1)
  }
  expect(await query('select from jobs')).toHaveLength(5)
})

test('a name whose job has no future is given to a new one; while its run lives it is not', async () => {
  const { kit, own } = await startTenants()
  const { jobId: gone } = await own.jobs.upsert('n', { queue: 'q', cron: '0 9 * * *' })
  await own.jobs.cancel(gone)
  const { jobId: second, created } = await own.jobs.upsert('n', { queue: 'q', delay: '1m' })
  expect([created, second === gone]).toEqual([true, false])
  await kit.pass(MINUTE)
  expect((await refusalOf(own.jobs.upsert('n', { queue: 'q', delay: '1m' }))).code).toBe('already_due')
  for (const [name, job] of [
    ['n', { queue: 'q', name: 'm' }],
    ['n', { queue: 'q', idempotencyKey: 'k' }],
    ['\0', { queue: 'q' }],
    ['', { queue: 'q' }],
    ['n', { queu: 'q' }],
    ['n', null],
  ] as const)
    expect((await refusalOf(own.jobs.upsert(name, job))).code, name).toBe('invalid_job')
})

test('a deleted job is found by nobody and makes no runs; what it did stays', async () => {
  const { kit, own, query } = await startTenants()
  await kit.handle('q', () => 'done')
  const { jobId } = await own.jobs.create({ name: 'n', queue: 'q', cron: '* * * * *' })
  await kit.pass(2 * MINUTE)
  const runs = await own.runs.list({ jobId })
  expect(runs.items.length).toBeGreaterThanOrEqual(2)
  await own.jobs.delete(jobId)
  await kit.pass(5 * MINUTE)
  expect((await refusalOf(own.jobs.get(jobId))).code).toBe('not_found')
  expect((await refusalOf(own.jobs.delete(jobId))).code).toBe('not_found')
  expect((await own.runs.list({ jobId })).items.map(({ id }) => id)).toEqual(runs.items.map(({ id }) => id))
  expect(await own.runs.get(runs.items[0]?.id ?? '')).toMatchObject({ status: 'succeeded', result: 'done' })
  expect((await own.jobs.create({ name: 'n', queue: 'q', delay: '1h' })).jobId).not.toBe(jobId)
  const [change] = await query<{ actor: string }>(`select actor from job_changes where action = 'delete'`)
  expect(change?.actor).toBe('bk_own')
})

test('a one-off that has become a run cannot be deleted until that is over', async () => {
  const { kit, own } = await startTenants()
  const { jobId } = await own.jobs.create({ queue: 'q' })
  expect((await refusalOf(own.jobs.delete(jobId))).code).toBe('already_due')
  const { jobId: planned } = await own.jobs.create({ queue: 'q', delay: '1h' })
  await own.jobs.delete(planned)
  await kit.pass(2 * HOUR)
  expect((await own.runs.list({ jobId: planned })).items).toMatchObject([{ status: 'canceled', attempt: 0 }])
  await own.jobs.cancel(jobId)
  await own.jobs.delete(jobId)
})

test('a tenant at its quota gets no more jobs until some are over', async () => {
  const { kit, own, other, query } = await startTenants()
  await query(`update tenants set max_active_jobs = 3 where id = 2`)
  kit.clock.advance(2_000)
  const jobs = await Promise.all([1, 2, 3].map(() => other.jobs.create({ queue: 'q', delay: '1h' })))
  for (const call of [
    () => other.jobs.create({ queue: 'q' }),
    () => other.jobs.createMany([{ queue: 'q' }]),
    () => other.jobs.upsert('n', { queue: 'q' }),
  ])
    expect((await refusalOf(call())).code).toBe('quota_exceeded')
  await own.jobs.create({ queue: 'q' })
  await other.jobs.cancel(jobs[0]?.jobId ?? '')
  kit.clock.advance(60_000)
  await other.jobs.create({ queue: 'q' })
})

test('a trigger makes a run, with a payload of its own if it is given one, and refuses what it does not know', async () => {
  const { own } = await startTenants()
  const { jobId } = await own.jobs.create({ queue: 'q', cron: '0 9 * * *', overlap: 'allow' })
  const { runId } = await own.jobs.trigger(jobId)
  expect(await own.runs.get(runId)).toMatchObject({ status: 'ready', cause: 'trigger' })
  const other = await own.jobs.trigger(jobId, { payload: { page: 2 } })
  expect(await own.runs.get(other.runId)).toMatchObject({ status: 'ready', payload: { page: 2 } })
  expect((await refusalOf(own.jobs.trigger(jobId, { payloads: {} } as never))).code).toBe('invalid_argument')
})

test('a secret that stands in a job is shown nowhere', async () => {
  const { own } = await startTenants()
  const auth = { tokenUrl: 'https://id.example.com/token', clientId: 'me', clientSecret: 'hush-hush' }
  const job = { http: { url: 'https://example.com', auth }, cron: '0 9 * * *' }
  const { jobId } = await own.jobs.create(job)
  await own.jobs.update(jobId, {
    http: { url: 'https://example.com/2', auth: { ...auth, clientSecret: 'hush-again' } },
  })
  const shown = [await own.jobs.get(jobId), await own.jobs.list(), await own.jobs.changes(jobId)]
  expect(JSON.stringify(shown)).not.toContain('hush')
  expect(JSON.stringify(shown)).toContain('https://example.com/2')
})
