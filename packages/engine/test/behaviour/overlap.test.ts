import { expect, test } from 'vitest'
import { type Overlap, SKIP_REASON } from '../../src/job/states.ts'
import { at, MINUTE, SECOND, startKit } from './kit.ts'
import { EVERY_TEN, leave, minutesOf, setup } from './overlap-kit.ts'

test('under buffer_one the first missed time waits, the others are skipped, and it runs when the live one has ended', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_one')
  await t.pass(40)
  expect(await t.runs(jobId)).toEqual(['10 running', '20 blocked'])
  expect(await t.skips(jobId)).toEqual([
    [30, 30, 'overlap', 1],
    [40, 40, 'overlap', 1],
  ])
  await t.end()
  expect(await t.runs(jobId)).toEqual(['10 succeeded', '20 running'])
  await t.pass(10)
  expect(await t.runs(jobId)).toEqual(['10 succeeded', '20 running', '50 blocked'])
})

test('under buffer_latest the newest missed time waits, and the one before it ends unrun and says why', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_latest')
  await t.pass(40)
  expect(await t.runs(jobId)).toEqual(['10 running', '20 skipped', '30 skipped', '40 blocked'])
  expect(await t.skips(jobId)).toEqual([])
  const [, , , second] = (await t.kit.runs.list({ jobId })).items.reverse()
  const superseded = await t.kit.runs.get((await t.kit.runs.list({ jobId })).items[2]?.id ?? '')
  expect(superseded).toMatchObject({
    status: 'skipped',
    error: 'superseded: 2026-01-01T00:30:00.000Z came meanwhile, and overlap is buffer_latest',
    attempts: [{ number: 0, counted: false, status: 'skipped', startedAt: null }],
  })
  expect(second?.status).toBe('blocked')
  await t.end()
  expect(await t.runs(jobId)).toEqual(['10 succeeded', '20 skipped', '30 skipped', '40 running'])
})

test('under buffer_all every missed time waits, and they run one after the other in order', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_all')
  await t.pass(40)
  expect(await t.runs(jobId)).toEqual(['10 running', '20 blocked', '30 blocked', '40 blocked'])
  for (let i = 0; i < 3; i++) {
    await t.end()
    expect(t.atWork).toHaveLength(1)
  }
  await t.end()
  expect(t.started).toEqual([10, 20, 30, 40])
  expect(await t.skips(jobId)).toEqual([])
})

test('under buffer_all no more than a thousand wait', async () => {
  const t = await setup()
  const catchUp = { policy: 'all', window: '30d', max: 2_000 } as const
  const jobId = await t.create('buffer_all', { every: 'PT1M', catchUp })
  t.kit.clock.advance(10 * MINUTE)
  await t.kit.settle(leave)
  t.kit.clock.advance(1_200 * MINUTE)
  await t.kit.settle(leave)
  expect(await t.query(`select count(*)::int as n, min(nominal_at) as first from runs where state = 3`)).toEqual([
    { n: 1_000, first: at(11 * MINUTE) },
  ])
  const total = await t.query<{ n: number }>(`select sum(count)::int as n from skips where job_id = $1`, [jobId])
  expect(total[0]?.n).toBe(200)
  expect(new Set((await t.skipsOf(jobId)).map(({ reason }) => reason))).toEqual(new Set([SKIP_REASON.overlap]))
})

test('under cancel_running the live run is asked to stop, and the new one starts when it is gone', async () => {
  const t = await setup()
  const jobId = await t.create('cancel_running')
  await t.pass(10)
  t.kit.clock.advance(10 * MINUTE)
  await t.kit.pulse()
  await t.kit.readTimers()
  await t.kit.promote()
  expect(await t.query('select from runs where state = 3')).toHaveLength(1)
  await t.pass(0)
  expect(await t.runs(jobId)).toEqual(['10 canceled', '20 running'])
})

test('under cancel_running a holder that does not answer is closed after its grace, and not before', async () => {
  const t = await startKit({ cancelGraceMs: 60_000, leaseMs: 600_000 })
  const deaf = new Promise(() => {})
  const started: Date[] = []
  await t.kit.handle('reports', (run) => {
    started.push(run.nominalAt)
    return deaf
  })
  await t.kit.jobs.create({ ...EVERY_TEN, overlap: 'cancel_running' })
  await t.kit.pass(20 * MINUTE + 59_000, leave)
  expect(started).toEqual([at(10 * MINUTE)])
  await t.kit.pass(2_000, leave)
  expect(started).toEqual([at(10 * MINUTE), at(20 * MINUTE)])
})

test('under cancel_running what nobody performs yet goes at once, and the new one is ready', async () => {
  const t = await setup()
  const jobId = await t.create('cancel_running', { queue: 'idle' })
  await t.pass(20)
  expect(await t.runs(jobId)).toEqual(['10 canceled', '20 ready'])
  const canceled = (await t.kit.runs.list({ jobId, status: 'canceled' })).items[0]
  expect(canceled?.error).toBe('canceled: 2026-01-01T00:20:00.000Z came meanwhile, and overlap is cancel_running')
})

test('a run in backoff is alive: what waits for it waits over its retries, until it has ended for good', async () => {
  const t = await setup()
  const retry = { maxAttempts: 2, backoff: { type: 'fixed', initial: '15m', jitter: 0 } } as const
  const jobId = await t.create('buffer_one', { retry })
  await t.pass(10)
  await t.end(() => Promise.reject(new Error('down')))
  await t.pass(10)
  expect(await t.runs(jobId)).toEqual(['10 waiting', '20 blocked'])
  await t.pass(5)
  expect(await t.runs(jobId)).toEqual(['10 running', '20 blocked'])
  await t.end(() => Promise.reject(new Error('down')))
  expect(await t.runs(jobId)).toEqual(['10 failed', '20 running'])
})

test.each([
  ['work that is lost', 'at_most_once', undefined],
  ['a job without retries whose handler does not stop', 'at_least_once', { maxAttempts: 1 }],
] as const)('the next run is woken by %s', async (_, delivery, retry) => {
  const t = await startKit()
  await t.kit.handle('reports', () => new Promise(() => {}))
  const job = { ...EVERY_TEN, overlap: 'buffer_all', delivery, timeout: '15m', ...(retry && { retry }) } as const
  const { jobId } = await t.kit.jobs.create(job)
  await t.kit.pass(20 * MINUTE, leave)
  expect((await t.kit.runs.list({ jobId })).items.map(({ status }) => status)).toEqual(['blocked', 'running'])
  await t.kit.pass(5 * MINUTE + 5 * SECOND, leave)
  expect((await t.kit.runs.list({ jobId })).items.map(({ status }) => status)[0]).toBe('running')
})

test('the next run is woken when the live one is canceled, or completed in its own transaction', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_all')
  await t.pass(40)
  const client = await t.pool.connect()
  await client.query('begin')
  await t.atWork[0]?.run.completeIn(client as never)
  await client.query('commit')
  client.release()
  await t.end()
  expect(await t.runs(jobId)).toEqual(['10 succeeded', '20 running', '30 blocked', '40 blocked'])
  await t.kit.runs.cancel(t.atWork[0]?.run.id ?? '')
  await t.pass(0)
  expect(await t.runs(jobId)).toEqual(['10 succeeded', '20 canceled', '30 running', '40 blocked'])
  const blocked = (await t.kit.runs.list({ jobId, status: 'blocked' })).items[0]
  expect(await t.kit.runs.cancel(blocked?.id ?? '')).toEqual({ status: 'canceled' })
})

test('the next run is woken when the queue of the live one is purged', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_all', { queue: 'idle' })
  await t.pass(10)
  await t.kit.jobs.update(jobId, { queue: 'reports' })
  await t.pass(10)
  expect(await t.runs(jobId)).toEqual(['10 ready', '20 blocked'])
  await (await t.kit.tenant('default')).queues.purge('idle')
  expect(await t.kit.wakeWaiting()).toBe(1)
  await t.pass(0)
  expect(await t.runs(jobId)).toEqual(['10 canceled', '20 running'])
})

test('a blocked run says what it waits for, and is found by its status', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_one')
  await t.pass(20)
  const [blocked] = (await t.kit.runs.list({ status: 'blocked' })).items
  const [running] = (await t.kit.runs.list({ jobId, status: 'running' })).items
  expect(await t.kit.runs.get(blocked?.id ?? '')).toMatchObject({ status: 'blocked', blockedBy: running?.id })
  expect(await t.kit.runs.get(running?.id ?? '')).toMatchObject({ blockedBy: null })
  const tenant = await t.kit.tenant('default')
  expect(await tenant.runs.get(blocked?.id ?? '')).toMatchObject({ blockedBy: running?.id })
})

test('a job whose last time waits is completed, and the run is still woken', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_one', { maxRuns: 2 })
  await t.pass(20)
  expect(await t.query('select from timers')).toEqual([])
  expect(await t.runs(jobId)).toEqual(['10 running', '20 blocked'])
  await t.end()
  expect(await t.runs(jobId)).toEqual(['10 succeeded', '20 running'])
})

test.each(['skip', 'buffer_one', 'buffer_all', 'cancel_running'] as const)(
  'a failed run that is opened again while another is alive waits for it under %s',
  async (overlap) => {
    const t = await setup()
    const jobId = await t.create(overlap, { retry: { maxAttempts: 1 } })
    await t.pass(10)
    const runId = t.atWork[0]?.run.id ?? ''
    await t.end(() => Promise.reject(new Error('down')))
    await t.pass(10)
    await t.kit.runs.retry(runId)
    expect(await t.runs(jobId)).toEqual(['10 blocked', '20 running'])
    await expect(t.kit.runs.retry(runId)).rejects.toMatchObject({ code: 'not_retryable' })
    await t.end()
    expect(await t.runs(jobId)).toEqual(['10 running', '20 succeeded'])
    expect(await t.kit.runs.get(runId)).toMatchObject({ attempt: 2 })
  },
)

test('a failed run that is opened again does not make way for a newer time', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_latest', { retry: { maxAttempts: 1 } })
  await t.pass(10)
  const runId = t.atWork[0]?.run.id ?? ''
  await t.end(() => Promise.reject(new Error('down')))
  await t.pass(10)
  await t.kit.runs.retry(runId)
  await t.pass(20)
  expect(await t.runs(jobId)).toEqual(['10 blocked', '20 running', '30 skipped', '40 blocked'])
  await t.end()
  expect(await t.runs(jobId)).toEqual(['10 running', '20 succeeded', '30 skipped', '40 blocked'])
})

test('a failed run of a completed job waits for another that is alive, and is woken', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_one', { maxRuns: 2, retry: { maxAttempts: 1 } })
  await t.pass(10)
  const runId = t.atWork[0]?.run.id ?? ''
  await t.end(() => Promise.reject(new Error('down')))
  await t.pass(10)
  await t.kit.runs.retry(runId)
  expect(await t.runs(jobId)).toEqual(['10 blocked', '20 running'])
  await t.end()
  expect(await t.runs(jobId)).toEqual(['10 running', '20 succeeded'])
})

test.each<[Overlap, string, string]>([
  ['allow', 'ready', 'ready'],
  ['skip', 'overlap', 'overlap'],
  ['buffer_one', 'blocked', 'overlap'],
  ['buffer_latest', 'blocked', 'blocked'],
  ['buffer_all', 'blocked', 'blocked'],
  ['cancel_running', 'blocked', 'blocked'],
])('a trigger obeys %s, of its job or of its own', async (overlap, first, second) => {
  // Deaf: what is asked to stop is still there when the second trigger comes.
  const t = await setup('deaf')
  const said = (jobId: string, options = {}) =>
    t.kit.jobs.trigger(jobId, options).then(
      ({ status }) => status,
      (error) => error.code,
    )
  const own = await t.create(overlap)
  const other = await t.create('skip')
  await t.pass(10)
  expect([await said(own), await said(own)]).toEqual([first, second])
  expect([await said(other, { overlap }), await said(other, { overlap })]).toEqual([first, second])
  for (const jobId of [own, other]) {
    const waiting = await t.query('select from runs where job_id = $1 and state = 3', [jobId])
    expect(waiting).toHaveLength(overlap === 'buffer_all' ? 2 : first === 'blocked' ? 1 : 0)
  }
  await t.pass(1)
  if (overlap === 'cancel_running') expect((await t.runs(own))[0]).toBe('10 canceled')
  while (t.atWork.length > 0) await t.end()
  expect(await t.query('select from runs')).toEqual([])
})

test('a superseded trigger keeps its payload to show, and the newest is performed', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_latest')
  await t.pass(10)
  const first = await t.kit.jobs.trigger(jobId, { payload: 'first' })
  await t.kit.jobs.trigger(jobId, { payload: 'second' })
  expect(await t.kit.runs.get(first.runId)).toMatchObject({ status: 'skipped', cause: 'trigger', payload: 'first' })
  await t.end()
  expect(t.atWork[0]?.run.payload).toBe('second')
})

test('an update under a policy that waits decides what is due, and what waits runs with the new definition', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_one')
  await t.pass(10)
  t.kit.clock.advance(10 * MINUTE)
  await t.kit.jobs.update(jobId, { payload: 2, overlap: 'skip' })
  expect(await t.runs(jobId)).toEqual(['10 running', '20 blocked'])
  await t.end()
  expect(t.atWork[0]?.run.payload).toBe(2)
})

test('canceling or deleting a job ends what waits', async () => {
  const t = await setup()
  const canceled = await t.create('buffer_all')
  const deleted = await t.create('buffer_all')
  await t.pass(30)
  await t.kit.jobs.cancel(canceled, { running: 'finish' })
  await (await t.kit.tenant('default')).jobs.delete(deleted)
  await t.pass(1)
  expect(await t.query('select from runs where state = 3')).toEqual([])
  expect(await t.runs(canceled)).toEqual(['10 running', '20 canceled', '30 canceled'])
})

interface Backfilled {
  policy: Overlap
  blocked: number[]
  skipped: [string, number | null][]
}
test.each<Backfilled>([
  { policy: 'skip', blocked: [20], skipped: [['overlap', 1]] },
  { policy: 'buffer_one', blocked: [20], skipped: [['overlap', 1]] },
  { policy: 'buffer_latest', blocked: [30], skipped: [] },
  { policy: 'buffer_all', blocked: [20, 30], skipped: [] },
])('a scheduled time that meets a backfill alone runs next under $policy', async ({ policy, blocked, skipped }) => {
  const t = await setup()
  const jobId = await t.create(policy)
  await t.pass(10)
  // What a backfill makes differs from this one by its cause alone.
  await t.query('update runs set cause = 3 where job_id = $1', [jobId])
  await t.pass(20)
  const waiting = await t.query<{ nominal_at: Date }>(`select nominal_at from runs where state = 3 order by nominal_at`)
  expect(waiting.map(({ nominal_at }) => minutesOf(nominal_at))).toEqual(blocked)
  expect((await t.skips(jobId)).map(([, , reason, count]) => [reason, count])).toEqual(skipped)
  await t.end()
  expect(minutesOf(t.atWork[0]?.run.nominalAt ?? new Date(0))).toBe(blocked[0])
})

test('cancel_running leaves a backfill alone', async () => {
  const t = await setup()
  const jobId = await t.create('cancel_running')
  await t.pass(10)
  await t.query('update runs set cause = 3 where job_id = $1', [jobId])
  await t.pass(20)
  expect(await t.query('select from runs where cancel_requested')).toEqual([])
  expect(await t.runs(jobId)).toEqual(['10 running', '20 canceled', '30 blocked'])
})

test.each(['skip', 'buffer_one'] as const)('maxRuns counts runs, and not what %s left out', async (policy) => {
  const t = await setup()
  const jobId = await t.create(policy, { maxRuns: 3 })
  await t.pass(45)
  for (let ended = 0; ended < 3; ended++) {
    await t.end()
    await t.pass(10)
  }
  await t.pass(60)
  await t.end()
  expect(t.started).toHaveLength(3)
  expect(await t.kit.jobs.get(jobId)).toMatchObject({ status: 'completed' })
})
