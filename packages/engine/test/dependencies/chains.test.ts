import { expect, test } from 'vitest'
import { held, MINUTE } from '../behaviour/kit.ts'
import { after, job, setup } from './setup.ts'

const every = (minutes: number) => ({ every: `PT${minutes}M`, startAt: new Date(Date.UTC(2026, 0, 1, 0, minutes)) })

async function setupChain() {
  const t = await setup()
  const runsOf = async (jobId: string | undefined) =>
    (await t.kit.runs.list({ jobId: String(jobId) })).items
      .map(({ nominalAt, status, cause }) => ({ at: nominalAt.toISOString().slice(11, 16), status, cause }))
      .sort((a, b) => (a.at < b.at ? -1 : 1))
  return { ...t, runsOf }
}

test('a job that follows a recurring one runs after each of its runs, with the same nominal time', async () => {
  const t = await setupChain()
  const ids = await t.create(job('a', every(1)), job('b', after('a')), job('c', after('b')))
  expect(await t.kit.jobs.get(String(ids.b))).toMatchObject({ status: 'active', nextRunAt: null })
  expect((await t.kit.jobs.get(String(ids.b)))?.understoodAs).toBe(`each time job ${ids.a} succeeds`)
  await t.kit.pass(2 * MINUTE)
  expect(t.seen()).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
  expect(await t.runsOf(ids.c)).toEqual([
    { at: '00:01', status: 'succeeded', cause: 'chain' },
    { at: '00:02', status: 'succeeded', cause: 'chain' },
  ])
  expect(await t.query('select from outbox')).toEqual([])
})

test('two parents with one nominal time make one run, when the last of them has ended', async () => {
  const t = await setupChain()
  const ids = await t.create(job('a', every(1)), job('b', every(1)), job('c', after('a', 'b')))
  await t.kit.pass(MINUTE)
  expect(t.seen().slice(0, 2).sort()).toEqual(['a', 'b'])
  expect(t.seen().slice(2)).toEqual(['c'])
  t.fails('b')
  await t.kit.pass(MINUTE)
  expect(await t.runsOf(ids.c)).toEqual([{ at: '00:01', status: 'succeeded', cause: 'chain' }])
  const skips = await t.skipsOf(String(ids.c))
  expect(skips.map(({ from, reason }) => [from.toISOString().slice(11, 16), reason])).toEqual([['00:02', 8]])
})

test('a time that one parent has run and another skips afterwards is followed', async () => {
  const t = await setupChain()
  const { gate, letGo } = held()
  t.acts.set('late', () => gate)
  const late = { ...every(1), jitter: 'PT30S', timeout: 'PT10M' }
  const ids = await t.create(job('a', every(1)), job('late', late), job('c', after('a', 'late')))
  // The first run of `late` is still at work when its second time comes, some seconds after that of `a` has ended.
  await t.kit.pass(2 * MINUTE, { running: 'leave' })
  expect((await t.runsOf(ids.a)).map(({ at }) => at)).toEqual(['00:01', '00:02'])
  expect(await t.skipsOf(String(ids.late))).toEqual([])
  await t.kit.pass(MINUTE / 2, { running: 'leave' })
  expect((await t.skipsOf(String(ids.late))).length).toBe(1)
  expect(await t.runsOf(ids.c)).toMatchObject([{ at: '00:02', cause: 'chain' }])
  letGo()
  await t.kit.settle()
  await t.kit.pulse()
  await t.kit.settle()
  expect((await t.runsOf(ids.c)).map(({ at, status }) => [at, status])).toEqual([
    ['00:01', 'succeeded'],
    ['00:02', 'succeeded'],
  ])
  expect(await t.query('select from outbox')).toEqual([])
})

test('a follower that somebody holds is told later, and keeps nobody else waiting', async () => {
  const t = await setupChain()
  const ids = await t.create(job('a', every(1)), job('held', after('a')), job('b', every(1)), job('free', after('b')))
  const client = await t.pool.connect()
  await client.query('begin')
  await client.query('select from timers where job_id = $1 for update', [ids.held])
  await t.kit.pass(MINUTE)
  expect(t.seen().sort()).toEqual(['a', 'b', 'free'])
  await client.query('commit')
  client.release()
  await t.kit.settle()
  expect(t.seen()).toContain('held')
  expect(await t.query('select from outbox')).toEqual([])
})

test('a run of the parent that is retried and succeeds is followed after all', async () => {
  const t = await setupChain()
  t.fails('a')
  const ids = await t.create(job('a', { ...every(1), maxRuns: 1 }), job('b', after('a')))
  await t.kit.pass(MINUTE)
  expect(await t.runsOf(ids.b)).toEqual([])
  t.works('a')
  await t.kit.runs.retry(String((await t.lastRun(ids.a))?.id))
  await t.kit.settle()
  expect(await t.runsOf(ids.b)).toEqual([{ at: '00:01', status: 'succeeded', cause: 'chain' }])
})

test('a job that follows is paused, resumed, triggered, updated and canceled like another', async () => {
  const t = await setupChain()
  const ids = await t.create(job('a', every(1)), job('b', after('a')))
  const b = String(ids.b)
  await t.kit.jobs.pause(b)
  await t.kit.pass(MINUTE)
  await t.kit.jobs.resume(b)
  await t.kit.pass(MINUTE)
  expect((await t.runsOf(b)).map(({ at }) => at)).toEqual(['00:02'])
  await t.kit.jobs.trigger(b)
  await t.kit.settle()
  expect((await t.runsOf(b)).length).toBe(2)
  expect(await t.kit.jobs.update(b, { priority: 9 })).toEqual({ version: 2 })
  await expect(t.kit.jobs.update(b, { cron: '* * * * *' })).rejects.toMatchObject({ code: 'invalid_job' })
  await expect(t.kit.jobs.update(b, { after: { jobs: [b] } })).rejects.toMatchObject({ code: 'invalid_job' })
  await t.kit.pass(MINUTE)
  expect((await t.runsOf(b)).length).toBe(3)
  await t.kit.jobs.cancel(b)
  await t.kit.pass(MINUTE)
  expect((await t.runsOf(b)).length).toBe(3)
})

test('a job that followed only one that was deleted has no future; its runs go on', async () => {
  const t = await setupChain()
  const ids = await t.create(
    job('a', every(1)),
    job('b', every(1)),
    job('both', after('a', 'b')),
    job('one', { ...after('a'), queue: 'slow' }),
  )
  await t.kit.pass(MINUTE)
  await (await t.kit.tenant('default')).jobs.delete(String(ids.a))
  expect([await t.status(ids.both), await t.status(ids.one)]).toEqual(['active', 'completed'])
  expect((await t.runsOf(ids.one)).map(({ status }) => status)).toEqual(['ready'])
  expect(await t.query('select from timers where job_id = $1', [ids.one])).toEqual([])
  await t.kit.pass(MINUTE)
  expect((await t.runsOf(ids.both)).map(({ at }) => at)).toEqual(['00:01', '00:02'])
})

test('a job that follows has nothing to make up for when it is resumed, and says so', async () => {
  const t = await setupChain()
  const ids = await t.create(job('a', every(1)), job('b', after('a')))
  await t.kit.jobs.pause(String(ids.b))
  await expect(t.kit.jobs.resume(String(ids.b), { missed: 'catch_up' })).rejects.toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining('follows others'),
  })
  expect(await t.status(ids.b)).toBe('paused')
})

test('a slow job that follows loses no run: they wait for each other', async () => {
  const t = await setupChain()
  const ids = await t.create(job('a', every(1)), job('b', { ...after('a'), queue: 'slow' }))
  await t.kit.pass(3 * MINUTE)
  expect((await t.runsOf(ids.b)).map(({ status }) => status)).toEqual(['ready', 'blocked', 'blocked'])
})

test('what cannot be a chain is refused', async () => {
  const t = await setupChain()
  const refused = async (message: string, ...jobs: Parameters<typeof t.create>) =>
    expect(t.create(...jobs)).rejects.toMatchObject({ code: 'invalid_job', message: expect.stringContaining(message) })
  await refused('after.jobs[1]: is recurring', job('a'), job('b', every(1)), job('c', after('a', 'b')))
  await refused(
    'onParentFailure: cannot be block',
    job('a', every(1)),
    job('b', { ...after('a'), onParentFailure: 'block' }),
  )
  await refused('overlap: only makes sense', job('a'), job('b', { ...after('a'), overlap: 'allow' }))
  await refused('cron: cannot stand beside after', job('a'), job('b', { ...after('a'), cron: '* * * * *' }))
  expect(await t.query('select from specs union all select from jobs')).toEqual([])
})
