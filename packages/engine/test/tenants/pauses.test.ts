import { expect, test } from 'vitest'
import { MINUTE, record, SECOND } from '../behaviour/kit.ts'
import { refusalOf, startTenants } from './setup.ts'

const HOUR = 60 * MINUTE

test('nothing of a paused tenant is started in its own queues, and its times still come', async () => {
  const { kit, own, query } = await startTenants()
  const seen = await record(kit, 'work')
  const { pause, created } = await own.pauses.create({ tenant: true, reason: 'moving' })
  expect(created).toBe(true)
  await kit.pulse()
  await own.jobs.create({ queue: 'work' })
  await own.jobs.create({ queue: 'work', delay: '1m' })
  await own.jobs.create({ queue: 'work', every: '1h', startAt: new Date(kit.now().getTime() + MINUTE) })
  await kit.pass(2 * MINUTE)
  expect(seen).toEqual([])
  expect(await query('select state from runs')).toEqual([{ state: 0 }, { state: 0 }, { state: 0 }])
  const [run] = (await own.runs.list({ status: 'ready' })).items
  expect(await own.jobs.explain(run?.jobId as string, run?.nominalAt)).toMatchObject({
    verdict: 'waiting',
    reason: 'tenant_paused',
    sentence: expect.stringContaining('while the tenant is paused by bk_own'),
    waits: { pause: { kind: 'tenant', actor: 'bk_own', reason: 'moving' } },
  })
  await own.pauses.end(pause.id as string)
  await kit.settle()
  expect(seen).toHaveLength(3)
})

test('a pause tells who made it, when and why; the changes are written down with their actors', async () => {
  const { kit, own, other, query } = await startTenants()
  const first = await own.pauses.create({ origin: 'https://API.example.com:443/', reason: 'they asked' })
  expect(first.pause).toMatchObject({ kind: 'origin', name: 'https://api.example.com', pausedBy: 'bk_own' })
  const again = await own.pauses.create({ origin: 'https://api.example.com', reason: 'another' })
  expect(again).toEqual({ created: false, pause: first.pause })
  await own.pauses.create({ key: 'customer-1' })
  await own.jobs.create({ queue: 'work' })
  await own.queues.pause('work', { reason: 'full' })
  expect(await own.pauses.list()).toEqual([
    { id: expect.any(String), kind: 'key', name: 'customer-1', pausedAt: kit.now(), pausedBy: 'bk_own', reason: null },
    { ...first.pause, reason: 'they asked' },
    { id: null, kind: 'queue', name: 'work', pausedAt: kit.now(), pausedBy: 'bk_own', reason: 'full' },
  ])
  expect(await own.queues.get('work')).toMatchObject({ pausedBy: 'bk_own', pauseReason: 'full' })
  expect(await other.pauses.list()).toEqual([])
  expect((await refusalOf(other.pauses.end(first.pause.id as string))).code).toBe('not_found')
  await own.pauses.end(first.pause.id as string)
  // Again: the same answer.
  await own.pauses.end(first.pause.id as string)
  const changes = await query(
    `select action, subject_id, actor, coalesce(before, after) ->> 'reason' as reason from job_changes where subject = 8 order by changed_at, action, subject_id`,
  )
  expect(changes).toEqual([
    { action: 'pause', subject_id: 'key/customer-1', actor: 'bk_own', reason: null },
    { action: 'pause', subject_id: 'origin/https://api.example.com', actor: 'bk_own', reason: 'they asked' },
    { action: 'resume', subject_id: 'origin/https://api.example.com', actor: 'bk_own', reason: 'they asked' },
  ])
  const renewed = await own.pauses.create({ origin: 'https://api.example.com' })
  expect(renewed.created).toBe(true)
  expect(renewed.pause.id).not.toBe(first.pause.id)
})

test('a job tells who paused it', async () => {
  const { own } = await startTenants()
  const { jobId } = await own.jobs.create({ queue: 'work', every: '1h' })
  await own.jobs.pause(jobId, { reason: 'later' })
  expect(await own.jobs.get(jobId)).toMatchObject({ pausedReason: 'later', pausedBy: 'bk_own' })
  await own.jobs.resume(jobId)
  expect(await own.jobs.get(jobId)).toMatchObject({ pausedReason: null, pausedBy: null })
})

test.each([
  [{}, 'pause'],
  [{ tenant: true, key: 'a' }, 'pause'],
  [{ tenant: 'other' }, 'tenant'],
  [{ key: '' }, 'key'],
  [{ key: 'x'.repeat(257) }, 'key'],
  [{ origin: 'example.com' }, 'origin'],
  [{ origin: 'ftp://example.com' }, 'origin'],
  [{ origin: 'https://example.com/path' }, 'origin'],
  [{ key: 'a', reason: 'x'.repeat(1_001) }, 'reason'],
  [{ queue: 'a' }, 'queue'],
])('%j pauses nothing', async (input, path) => {
  const { own, query } = await startTenants()
  await expect(own.pauses.create(input as never)).rejects.toMatchObject({
    code: 'invalid_argument',
    complaints: [{ path }],
  })
  expect(await query('select from pauses')).toEqual([])
})

test('runs of a paused key wait, those of others do not, and they start after the resume', async () => {
  const { kit, own, query } = await startTenants()
  const seen = await record(kit, 'work')
  const { pause } = await own.pauses.create({ key: 'k', reason: 'slow' })
  const keyed = (key: string, payload: number) => ({ queue: 'work', payload, concurrency: { key, limit: 2 } })
  const [first] = await own.jobs.createMany([keyed('k', 1), keyed('other', 2), keyed('k', 3)])
  await kit.pass(MINUTE)
  expect(await own.jobs.explain(first?.jobId as string, new Date(kit.now().getTime() - MINUTE))).toMatchObject({
    reason: 'key_paused',
    sentence: expect.stringContaining('while the key k is paused by bk_own'),
  })
  expect(seen.map(({ payload }) => payload)).toEqual([2])
  expect(await query(`select paused_by, pause_reason from limits where name = 'k'`)).toEqual([
    { paused_by: 'bk_own', pause_reason: 'slow' },
  ])
  await own.pauses.end(pause.id as string)
  await kit.pass(SECOND)
  expect(seen.map(({ payload }) => payload).sort()).toEqual([1, 2, 3])
  expect(await query(`select paused_at, max_running from limits where name = 'k'`)).toEqual([
    { paused_at: null, max_running: 2 },
  ])
})

test('a key that nobody used while it was paused has the limit of its jobs afterwards', async () => {
  const { own, query } = await startTenants()
  const { pause } = await own.pauses.create({ key: 'k' })
  expect(await query('select max_running from limits')).toEqual([{ max_running: null }])
  await own.pauses.end(pause.id as string)
  // Whoever claims makes it from what the jobs say.
  expect(await query('select from limits')).toEqual([])
})

test('a pause that has ended is forgotten when all its runs have been called back', async () => {
  const { kit, own, query } = await startTenants()
  const { pause } = await own.pauses.create({ tenant: true })
  await own.pauses.end(pause.id as string)
  await kit.settle()
  expect(await query('select from pauses')).toHaveLength(1)
  await kit.pass(6 * SECOND)
  await kit.settle()
  expect(await query('select from pauses')).toEqual([])
  await kit.pass(HOUR)
})
