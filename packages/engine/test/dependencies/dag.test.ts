import { expect, test } from 'vitest'
import { after, job, setup } from './setup.ts'

test('a diamond runs from top to bottom, each job once, and leaves nothing behind', async () => {
  const t = await setup()
  const ids = await t.create(
    job('bottom', after('left', 'right', 'left')),
    job('left', after('top')),
    job('right', after('top')),
    job('top'),
  )
  expect(await t.kit.jobs.get(String(ids.bottom))).toMatchObject({
    status: 'active',
    nextRunAt: null,
    schedule: null,
    understoodAs: 'when 2 jobs have succeeded',
    after: { jobs: [ids.left, ids.right], on: 'success', onParentFailure: 'cancel' },
  })
  expect(await t.lastRun(ids.bottom)).toMatchObject({
    status: 'blocked',
    parents: [
      { jobId: ids.left, ref: 'left', status: null },
      { jobId: ids.right, ref: 'right', status: null },
    ],
    waitsFor: { count: 2 },
  })
  await t.kit.settle()
  expect(t.seen()[0]).toBe('top')
  expect(t.seen().slice(1, 3).sort()).toEqual(['left', 'right'])
  expect(t.seen().slice(3)).toEqual(['bottom'])
  expect(await t.query('select from edges')).toEqual([])
  expect(await t.query('select from outbox')).toEqual([])
})

test('a call whose jobs wait for too many others in all is refused before anything is made of it', async () => {
  const t = await setup()
  const names = Array.from({ length: 1_000 }, (_, i) => `j${i}`)
  const waiting = Array.from({ length: 101 }, (_, i) => job(`w${i}`, after(...names)))
  const refused = {
    code: 'invalid_argument',
    message: expect.stringContaining(
      'at most 100000 jobs to wait for in one call, all after.jobs together, not 101000',
    ),
    complaints: [{ path: 'jobs' }],
  }
  await expect(t.create(...names.map((name) => job(name)), ...waiting)).rejects.toMatchObject(refused)
  await expect(t.kit.batches.create(waiting)).rejects.toMatchObject(refused)
  // One job less is looked at: what it waits for is not there.
  await expect(t.create(...waiting.slice(1))).rejects.toMatchObject({ code: 'invalid_job' })
})

test('children take turns by their fairness keys, also those that are opened again', async () => {
  const t = await setup()
  const greedy = Array.from({ length: 10 }, (_, i) => job(`g${i}`, { ...after('p'), fairnessKey: 'greedy' }))
  const modest = job('modest', { ...after('p'), fairnessKey: 'modest' })
  t.fails('p')
  const ids = await t.create(job('p'), ...greedy, modest)
  await t.kit.settle()
  t.works('p')
  await t.kit.runs.retry(String((await t.lastRun(ids.p))?.id))
  await t.create(job('q'), ...greedy.map((one) => ({ ...one, ...after('q') })), { ...modest, ...after('q') })
  await t.kit.settle()
  const places = t.seen().flatMap((name, i) => (name === 'modest' ? [i] : []))
  expect(t.seen().length).toBe(25)
  // Three parents, then the two modest ones among the first of each greedy flow.
  expect(Math.max(...places)).toBeLessThan(12)
})

test('a long chain is opened again step by step, and none of it waits for ever', async () => {
  const t = await setup()
  const length = 35
  t.fails('j0')
  const jobs = Array.from({ length }, (_, i) => job(`j${i}`, i === 0 ? {} : after(`j${i - 1}`)))
  const { batchId } = await t.kit.batches.create(jobs)
  const head = (await t.kit.runs.list({})).items.find(({ status }) => status === 'ready')
  await t.kit.settle()
  expect(await t.kit.batches.get(batchId)).toMatchObject({ failed: 1, canceled: length - 1 })
  t.works('j0')
  await t.kit.runs.retry(String(head?.id))
  const reopened = await t.query<{ n: number }>('select count(*)::int as n from runs where state = 5')
  expect(reopened).toEqual([{ n: 10 }])
  // The first ones run, and end, before the others are there.
  await t.kit.pulse()
  await t.kit.settle()
  expect(await t.kit.batches.get(batchId)).toMatchObject({ succeeded: length, failed: 0, canceled: 0 })
  expect(t.seen().slice(1)).toEqual(jobs.map(({ ref }) => ref))
  expect(await t.query('select from outbox')).toEqual([])
})

test('a run that has ended before its children are opened again tells them all the same', async () => {
  const t = await setup()
  t.fails('j0')
  const jobs = Array.from({ length: 12 }, (_, i) => job(`j${i}`, i === 0 ? {} : after(`j${i - 1}`)))
  const ids = await t.create(...jobs)
  await t.kit.settle()
  t.works('j0')
  await t.kit.runs.retry(String((await t.lastRun(ids.j0))?.id))
  // As another node would hold it: what is to be opened is taken away, and put back when the tenth has ended.
  const opened = await t.query<{ job_id: string }>('delete from outbox where number = -2 returning *')
  expect(opened.map(({ job_id }) => job_id)).toEqual([ids.j10])
  await t.kit.settle()
  expect(await t.status(ids.j10)).toBe('succeeded')
  expect(await t.status(ids.j11)).toBe('canceled')
  await t.query(
    `insert into outbox select nominal_at, job_id, -2, shard, 0, true from attempts where job_id = $1 and outcome = 1`,
    [ids.j10],
  )
  await t.kit.pulse()
  await t.kit.settle()
  expect(await t.status(ids.j11)).toBe('succeeded')
})

test("a child whose unique key is another job's by now is not opened again with its parent", async () => {
  const t = await setup()
  t.fails('p', 'q')
  const unique = { unique: { key: 'u' } }
  const ids = await t.create(job('p'), job('c', { ...after('p'), ...unique }))
  await t.kit.settle()
  const other = await t.create(job('q'), job('other', { ...after('q'), ...unique }))
  t.works('p')
  await t.kit.runs.retry(String((await t.lastRun(ids.p))?.id))
  expect([await t.status(ids.c), await t.status(other.other)]).toEqual(['canceled', 'active'])
  await t.kit.settle()
  expect(t.seen()).not.toContain('c')
  // `other` is over: its key is free when the run is opened again with its parent.
  t.works('q')
  await t.kit.runs.retry(String((await t.lastRun(other.q))?.id))
  await t.kit.settle()
  expect(t.seen()).toContain('other')
})

test('a child gets the results of its parents, in the order in which it names them', async () => {
  const t = await setup()
  t.acts.set('a', () => ({ rows: 3 }))
  t.fails('b')
  let parents: unknown
  t.acts.set('c', async (run) => {
    parents = await run.parents()
  })
  const ids = await t.create(job('b'), job('a'), job('c', { after: { jobs: ['a', 'b'], on: 'finish' } }))
  await t.kit.settle()
  const [a, b] = [await t.lastRun(ids.a), await t.lastRun(ids.b)]
  expect(parents).toEqual([
    { jobId: ids.a, ref: 'a', runId: a?.id, status: 'succeeded', result: { rows: 3 } },
    { jobId: ids.b, ref: 'b', runId: b?.id, status: 'failed', result: null },
  ])
  expect((await t.lastRun(ids.c))?.parents).toEqual(parents)
})

test('a parent that fails cancels its children and theirs; one that is retried opens them again', async () => {
  const t = await setup()
  t.fails('a')
  const ids = await t.create(job('a'), job('b', after('a')), job('c', after('b')), job('other'))
  await t.kit.settle()
  expect([await t.status(ids.a), await t.status(ids.b), await t.status(ids.c)]).toEqual([
    'failed',
    'canceled',
    'canceled',
  ])
  const b = await t.lastRun(ids.b)
  expect(b).toMatchObject({
    status: 'canceled',
    attempt: 0,
    error: `canceled: job ${ids.a}, which it waited for, failed`,
  })
  expect((await t.lastRun(ids.c))?.error).toBe(`canceled: job ${ids.b}, which it waited for, was canceled`)
  t.works('a')
  await t.kit.runs.retry(String((await t.lastRun(ids.a))?.id))
  expect([await t.status(ids.b), await t.status(ids.c)]).toEqual(['active', 'active'])
  await t.kit.settle()
  expect([await t.status(ids.a), await t.status(ids.b), await t.status(ids.c)]).toEqual([
    'succeeded',
    'succeeded',
    'succeeded',
  ])
  expect((await t.lastRun(ids.b))?.id).toBe(b?.id)
  expect(await t.query('select from edges')).toEqual([])
})

test('a child that two parents failed is opened again when both are retried', async () => {
  const t = await setup()
  t.fails('a', 'b')
  const ids = await t.create(job('a'), job('b'), job('c', after('a', 'b')))
  await t.kit.settle()
  expect(await t.status(ids.c)).toBe('canceled')
  t.works('a', 'b')
  await t.kit.runs.retry(String((await t.lastRun(ids.a))?.id))
  await t.kit.settle()
  expect(await t.status(ids.c)).toBe('canceled')
  await t.kit.runs.retry(String((await t.lastRun(ids.b))?.id))
  await t.kit.settle()
  expect(await t.status(ids.c)).toBe('succeeded')
})

test('a child that somebody canceled stays so, whatever becomes of its parents', async () => {
  const t = await setup()
  t.fails('a', 'b')
  const ids = await t.create(job('a'), job('b'), job('c', after('a', 'b')))
  await t.kit.jobs.cancel(String(ids.c))
  await t.kit.settle()
  t.works('a')
  await t.kit.runs.retry(String((await t.lastRun(ids.a))?.id))
  await t.kit.settle()
  expect(await t.status(ids.c)).toBe('canceled')
  expect(t.seen()).not.toContain('c')
})

test('a blocked child waits until its parent is retried, or somebody runs or cancels it', async () => {
  const t = await setup()
  t.fails('a')
  const block = { ...after('a'), onParentFailure: 'block' as const }
  const ids = await t.create(job('a'), job('waits', block), job('forced', block), job('given-up', block))
  await t.kit.settle()
  expect(await t.lastRun(ids.waits)).toMatchObject({
    status: 'blocked',
    waitsFor: { count: 1, jobs: [{ jobId: ids.a, hasFailed: true }] },
  })
  const triggered = await t.kit.jobs.trigger(String(ids.forced))
  expect(triggered).toEqual({ runId: (await t.lastRun(ids.forced))?.id, status: 'ready' })
  await t.kit.jobs.cancel(String(ids['given-up']))
  await t.kit.settle()
  expect(await t.status(ids.forced)).toBe('succeeded')
  t.works('a')
  await t.kit.runs.retry(String((await t.lastRun(ids.a))?.id))
  await t.kit.settle()
  expect(t.seen()).toEqual(['a', 'forced', 'a', 'waits'])
  expect(await t.status(ids['given-up'])).toBe('canceled')
  await t.kit.purge()
  expect(await t.query('select from edges')).toEqual([])
})

test('whoever waits for failure runs after one, and is not needed after success', async () => {
  const t = await setup()
  t.fails('bad')
  const onFailure = (name: string) => ({ after: { jobs: [name], on: 'failure' as const } })
  const ids = await t.create(
    job('bad'),
    job('good'),
    job('clean-bad', onFailure('bad')),
    job('clean-good', onFailure('good')),
    job('after-clean', onFailure('clean-good')),
    job('anyway', { ...after('bad'), onParentFailure: 'run' }),
  )
  await t.kit.settle()
  expect(t.seen().sort()).toEqual(['anyway', 'bad', 'clean-bad', 'good'])
  expect(await t.lastRun(ids['clean-good'])).toMatchObject({
    status: 'skipped',
    error: `not needed: job ${ids.good}, whose failure it waited for, succeeded`,
  })
  expect((await t.lastRun(ids['after-clean']))?.status).toBe('skipped')
})

test('canceling a parent counts as its failure, whatever it was doing', async () => {
  const t = await setup()
  const ids = await t.create(
    job('later', { delay: '1h' }),
    job('child', after('later')),
    job('cleans', { after: { jobs: ['later'], on: 'failure' } }),
  )
  await t.kit.jobs.cancel(String(ids.later))
  await t.kit.settle()
  expect(await t.status(ids.child)).toBe('canceled')
  expect(await t.status(ids.cleans)).toBe('succeeded')
})

test('a job may wait for one that ended long before, however that was', async () => {
  const t = await setup()
  t.fails('bad')
  const ids = await t.create(job('good'), job('bad'), job('gone'))
  await t.kit.settle()
  const late = await t.create(
    job('1', after(String(ids.good))),
    job('2', after(String(ids.bad))),
    job('3', { after: { jobs: [String(ids.bad)], on: 'failure' } }),
    job('4', after('1')),
  )
  await t.kit.settle()
  expect(await Promise.all([1, 2, 3, 4].map((name) => t.status(late[name])))).toEqual([
    'succeeded',
    'canceled',
    'succeeded',
    'succeeded',
  ])
  await t.query('delete from attempts where job_id = $1', [ids.gone])
  await expect(t.create(job('5', after(String(ids.gone))))).rejects.toMatchObject({
    code: 'invalid_job',
    message: 'job 0: after.jobs[0]: ended so long ago that nobody knows how: wait for it with on "finish"',
  })
  const ended = await t.create(job('6', { after: { jobs: [String(ids.gone)], on: 'finish' } }))
  await t.kit.settle()
  expect(await t.status(ended['6'])).toBe('succeeded')
})

test('jobs that are there already may be named beside new ones, and the same request is the same graph', async () => {
  const t = await setup()
  const { first = '' } = await t.create(job('first', { delay: '1h' }))
  const call = [
    job('a', { idempotencyKey: 'a', ...after(first) }),
    job('b', { idempotencyKey: 'b', ...after('a', first) }),
  ]
  const made = await t.create(...call)
  expect(await t.create(...call)).toEqual(made)
  // A new child of a job that the same key made before.
  const more = await t.create(call[0] as (typeof call)[0], job('c', after('a')))
  expect(more.a).toBe(made.a)
  await t.kit.pass(3_600_000)
  expect(t.seen()).toEqual(['first', 'a', expect.anything(), expect.anything()])
  expect(t.seen().slice(2).sort()).toEqual(['b', 'c'])
})

test('in a caller’s transaction a graph is made with it, or not at all', async () => {
  const t = await setup()
  const { first = '' } = await t.create(job('first'))
  const client = await t.pool.connect()
  for (const end of ['rollback', 'commit']) {
    await client.query('begin')
    await t.kit.jobs.createMany([job(`a-${end}`, after(first)), job(`b-${end}`, after(`a-${end}`))], { tx: client })
    await client.query(end)
  }
  client.release()
  await t.kit.settle()
  expect(t.seen()).toEqual(['first', 'a-commit', 'b-commit'])
})
