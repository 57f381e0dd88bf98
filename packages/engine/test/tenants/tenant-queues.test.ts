import { expect, test } from 'vitest'
import { MINUTE } from '../behaviour/kit.ts'
import { refusalOf, startTenants } from './setup.ts'

test('queues are listed with what is in them, the shared one with one’s own', async () => {
  const { kit, own, other } = await startTenants()
  let letGo = () => {}
  await kit.handle(
    'busy',
    () =>
      new Promise<void>((resolve) => {
        letGo = resolve
      }),
    { concurrency: 1 },
  )
  await kit.handle('flaky', () => Promise.reject(new Error('no')))
  await own.jobs.createMany([{ queue: 'busy' }, { queue: 'flaky' }, { queue: 'idle' }, { queue: 'idle' }])
  await other.jobs.createMany(Array.from({ length: 20 }, () => ({ queue: 'idle' })))
  await kit.settle({ running: 'leave' })
  kit.clock.advance(MINUTE)
  const { items } = await own.queues.list()
  expect(items.map(({ name, depth }) => [name, depth.ready, depth.running, depth.waiting])).toEqual([
    ['busy', 0, 1, 0],
    ['flaky', 0, 0, 1],
    ['http', 0, 0, 0],
    ['idle', 2, 0, 0],
  ])
  expect(items.every(({ depth }) => depth.isComplete)).toBe(true)
  expect(items[2]).toMatchObject({ shared: true, kind: 'http' })
  expect(items[3]).toMatchObject({ kind: 'worker', shared: false, paused: false, oldestReadyMs: MINUTE })
  const first = await own.queues.list({ limit: 3 })
  expect(
    (await own.queues.list({ limit: 3, cursor: first.nextCursor as string })).items.map(({ name }) => name),
  ).toEqual(['idle'])
  expect((await refusalOf(own.queues.get('none'))).code).toBe('not_found')
  expect((await refusalOf(own.queues.get('\0'))).code).toBe('not_found')
  letGo()
})

test('nothing is started of a paused queue, neither claimed nor leased when due, until it is resumed', async () => {
  const { kit, own } = await startTenants()
  const seen: string[] = []
  await kit.handle('q', (run) => {
    seen.push(run.jobId)
  })
  await own.jobs.create({ queue: 'q' })
  await kit.settle()
  expect(seen).toHaveLength(1)
  await own.queues.pause('q', { reason: 'moving' })
  await own.queues.pause('q', { reason: 'again' })
  await kit.pulse()
  await own.jobs.create({ queue: 'q' })
  await own.jobs.create({ queue: 'q', delay: '1m' })
  await kit.pass(2 * MINUTE)
  expect(seen).toHaveLength(1)
  expect(await own.queues.get('q')).toMatchObject({ paused: true, pauseReason: 'moving', depth: { ready: 2 } })
  await own.queues.resume('q')
  await kit.settle()
  expect(seen).toHaveLength(3)
  expect(await own.queues.get('q')).toMatchObject({ paused: false, pausedAt: null, pauseReason: null })
})

test('a pause reaches another node with its next pulse, one that starts later included', async () => {
  const { kit, own } = await startTenants()
  const { startTestKit } = await import('../../src/testing/index.ts')
  const { inject, onTestFinished } = await import('vitest')
  const nodes = await Promise.all(
    [1, 2].map(() => startTestKit({ database: inject('postgres'), schema: kit.schema, shards: 4 })),
  )
  for (const node of nodes) onTestFinished(() => node.stop())
  const seen: number[] = []
  const [early, late] = nodes as [(typeof nodes)[0], (typeof nodes)[0]]
  await early.handle('q', () => {
    seen.push(1)
  })
  await own.queues.put('q')
  await own.queues.pause('q')
  await early.pulse()
  await late.pulse()
  await late.handle('q', () => {
    seen.push(2)
  })
  await own.jobs.create({ queue: 'q' })
  await early.settle()
  await late.settle()
  expect(seen).toEqual([])
  await own.queues.resume('q')
  await early.settle()
  expect(seen).toEqual([1])
})

test('a purge cancels what nobody performs, of this tenant and this queue, and nothing vanishes', async () => {
  const { kit, own, other, query } = await startTenants()
  let letGo = () => {}
  await kit.handle(
    'q',
    () =>
      new Promise<void>((resolve) => {
        letGo = resolve
      }),
    { concurrency: 1 },
  )
  await own.jobs.create({ queue: 'q' })
  await kit.settle({ running: 'leave' })
  await own.jobs.createMany(Array.from({ length: 2_300 }, () => ({ queue: 'q' })))
  await own.jobs.create({ queue: 'keep' })
  await other.jobs.create({ queue: 'q' })
  expect(await own.queues.purge('q')).toEqual({ purged: 2_300 })
  expect(await own.queues.purge('q')).toEqual({ purged: 0 })
  expect(await own.queues.get('q')).toMatchObject({ depth: { ready: 0, running: 1, waiting: 0 } })
  const [ended] = await query(
    'select count(*)::int, min(number) as number, bool_or(counted) as counted, bool_and(final) as final from attempts',
  )
  expect(ended).toEqual({ count: 2_300, number: 0, counted: false, final: true })
  expect((await own.runs.list({ status: 'canceled', limit: 1_000 })).items).toHaveLength(1_000)
  expect((await own.runs.list({ queue: 'keep' })).items).toHaveLength(1)
  expect((await other.runs.list({})).items).toHaveLength(1)
  expect((await refusalOf(own.queues.purge('none'))).code).toBe('not_found')
  letGo()
})

test('only an empty queue can be deleted, and it is back when it is named again', async () => {
  const { kit, own, other, query } = await startTenants()
  const seen: string[] = []
  await kit.handle('q', (run) => {
    seen.push(run.jobId)
  })
  await kit.settle()
  await own.queues.pause('q')
  const { jobId } = await own.jobs.create({ queue: 'q' })
  expect((await refusalOf(own.queues.delete('q'))).code).toBe('not_empty')
  await own.jobs.cancel(jobId)
  const { jobId: planned } = await own.jobs.create({ queue: 'q', cron: '0 9 * * *' })
  expect((await refusalOf(own.queues.delete('q'))).code).toBe('not_empty')
  await own.jobs.cancel(planned)
  expect((await refusalOf(other.queues.delete('q'))).code).toBe('not_found')
  await own.queues.delete('q')
  expect((await refusalOf(own.queues.get('q'))).code).toBe('not_found')
  expect((await own.queues.list()).items.map(({ name }) => name)).toEqual(['http'])
  await kit.pulse()
  await own.jobs.create({ queue: 'q' })
  expect(await own.queues.get('q')).toMatchObject({ paused: false, kind: 'worker' })
  await kit.settle()
  expect(seen).toHaveLength(1)
  const changes = await query<{ action: string }>(
    'select action from job_changes where subject = 1 order by written_at',
  )
  expect(changes.map(({ action }) => action)).toEqual(['pause', 'delete'])
})

test('a queue is of one kind, and the shared one is not for a tenant to change', async () => {
  const { own } = await startTenants()
  await own.queues.put('undecided')
  expect((await own.queues.get('undecided')).kind).toBeNull()
  await own.jobs.create({ http: { url: 'https://example.com/' }, queue: 'undecided', delay: '1h' })
  expect((await own.queues.get('undecided')).kind).toBe('http')
  await own.queues.put('calls', { kind: 'http' })
  await own.queues.put('calls')
  expect(await own.queues.get('calls')).toMatchObject({ kind: 'http' })
  expect((await refusalOf(own.queues.put('calls', { kind: 'worker' }))).code).toBe('queue_kind')
  expect((await refusalOf(own.jobs.create({ queue: 'calls' }))).code).toBe('queue_kind')
  for (const call of [() => own.queues.pause('http'), () => own.queues.resume('http'), () => own.queues.delete('http')])
    expect((await refusalOf(call())).code).toBe('forbidden')
  expect(await own.queues.purge('http')).toEqual({ purged: 0 })
  for (const [name, options] of [
    ['a b', {}],
    ['\0', {}],
    ['', {}],
    ['x'.repeat(129), {}],
    ['q', { kind: 'htp' }],
  ] as const)
    expect((await refusalOf(own.queues.put(name, options as never))).code, name).toBe('invalid_argument')
  expect((await refusalOf(own.queues.pause('none'))).code).toBe('not_found')
  expect((await refusalOf(own.queues.pause('calls', { reason: '\0' }))).code).toBe('invalid_argument')
})
