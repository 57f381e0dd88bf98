import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { type Overlap, RUN_STATE, SKIP_REASON } from '../../src/job/states.ts'
import { MINUTE, type Node, START, setup } from './setup.ts'

const EVERY_TEN = { every: 'PT10M', startAt: new Date(START + 10 * MINUTE), queue: 'reports', payload: 1 } as const
/** A job that another transaction held is looked at again after this. */
const HELD_PAUSE_MS = 20
const nominal = (minute: number): Date => new Date(START + minute * MINUTE)

/** Two nodes, a job, and its run of minute 10, which is performed by the first of them until it is told to end. */
async function begun(overlap: Overlap, more: object = {}) {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create({ ...EVERY_TEN, overlap, timeout: '1d', ...more })
  const ends: ((error?: Error) => void)[] = []
  const started: Date[] = []
  const handler = (run: { nominalAt: Date }) =>
    new Promise<void>((resolve, reject) => {
      started.push(run.nominalAt)
      ends.push((error) => (error ? reject(error) : resolve()))
    })
  await a.handle('reports', handler)
  /** As if the pulse had told of the timer. */
  const read = async (node: Node) => {
    for (const shard of [0, 1]) node.engine.reader.want(shard, node.clock.now())
    await node.readTimers()
  }
  const come = async (node: Node, minutes: number) => {
    for (const one of [a, b]) one.clock.advance(minutes * MINUTE)
    await read(node)
  }
  await come(a, 10)
  await a.promote()
  await a.handlersBegin()
  expect(started).toEqual([nominal(10)])
  const live = () =>
    t.query<{ nominal_at: Date; state: number }>(
      'select nominal_at, state from runs where job_id = $1 order by nominal_at',
      [jobId],
    )
  const states = async () =>
    (await live()).map(({ nominal_at, state }) => [
      (nominal_at.getTime() - START) / MINUTE,
      Object.keys(RUN_STATE)[state],
    ])
  const finish = async (error?: Error) => {
    ends.shift()?.(error)
    await a.engine.handlers.settled()
  }
  const wake = (node: Node) => {
    node.clock.advance(HELD_PAUSE_MS)
    return node.engine.waking.waker.runOnce()
  }
  return { ...t, a, b, jobId, come, read, states, finish, wake, started }
}

test('a run that ends while the next time is decided to wait for it is followed by that one', async () => {
  const t = await begun('buffer_one')
  await t.come(t.b, 10)
  const hold = await t.holdAt('insert', 'runs', t.jobId)
  // An update decides what is due, as promotion does: it has seen the live run and is about to write one that waits for it.
  const promoting = t.b.jobs.update(t.jobId, { payload: 2 })
  await t.untilBlocked()
  await t.finish()
  // Whoever ended it finds the job locked, and looks again.
  expect(await t.wake(t.a)).toEqual({ waitMs: 20, woken: 0 })
  await hold.release()
  await promoting
  expect(await t.states()).toEqual([[20, 'blocked']])
  expect((await t.wake(t.a)).woken).toBe(1)
  expect(await t.states()).toEqual([[20, 'ready']])
})

test('a time that is decided just after the end of the live run waits for nobody', async () => {
  const t = await begun('buffer_one')
  await t.come(t.b, 10)
  const hold = await t.holdAt('delete', 'runs', t.jobId)
  const ending = t.finish()
  await t.untilBlocked()
  // Not committed yet: it is alive, so the new one waits.
  await t.b.promote()
  expect(await t.states()).toEqual([
    [10, 'leased'],
    [20, 'blocked'],
  ])
  await hold.release()
  await ending
  expect((await t.wake(t.a)).woken).toBe(1)
  expect(await t.states()).toEqual([[20, 'ready']])
})

test('a trigger that waits by a policy of its own is woken by the end of the live run, without the sweep', async () => {
  const t = await begun('skip')
  expect((await t.a.jobs.trigger(t.jobId, { overlap: 'buffer_all' })).status).toBe('blocked')
  t.a.clock.advance(1)
  expect((await t.a.jobs.trigger(t.jobId, { overlap: 'buffer_all' })).status).toBe('blocked')
  await t.finish()
  expect((await t.wake(t.a)).woken).toBe(1)
  await t.a.claim('reports')
  await t.finish()
  expect((await t.wake(t.a)).woken).toBe(1)
  await t.a.claim('reports')
  await t.finish()
  // Nothing waits any more: one look found that out, and nothing is looked at after the next run.
  expect(await t.wake(t.a)).toEqual({ waitMs: 1_000, woken: 0 })
  expect(await t.states()).toEqual([])
})

test('a run that was opened again and waits is woken by the end of the live run, without the sweep', async () => {
  const t = await begun('skip', { retry: { maxAttempts: 1 } })
  await t.finish(new Error('down'))
  await t.come(t.a, 10)
  await t.a.promote()
  await t.a.handlersBegin()
  await t.a.runs.retry(runIdOf(t.jobId, nominal(10).getTime()))
  expect(await t.states()).toEqual([
    [10, 'blocked'],
    [20, 'leased'],
  ])
  await t.finish()
  expect((await t.wake(t.a)).woken).toBe(1)
})

test.each<Overlap>(['buffer_one', 'buffer_latest', 'buffer_all', 'cancel_running'])(
  'two promoters that meet a live run make one that waits under %s',
  async (overlap) => {
    const t = await begun(overlap)
    await t.come(t.a, 10)
    await t.b.readTimers()
    await Promise.all([t.a.promote(), t.b.promote()])
    for (const node of [t.a, t.b]) {
      await t.read(node)
      await node.promote()
    }
    expect(await t.states()).toEqual([
      [10, 'leased'],
      [20, 'blocked'],
    ])
    expect(await t.query('select from skips')).toEqual([])
    expect(await t.query('select from attempts')).toEqual([])
  },
)

test('a promotion whose job gets a run between its snapshot and its look at the timer leaves it to be decided', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const job = { ...EVERY_TEN, overlap: 'buffer_one' } as const
  const [first, second] = (await a.jobs.createMany([job, job])).sort(inLockOrder)
  for (const node of [a, b]) node.clock.advance(10 * MINUTE + 5)
  await b.readTimers()
  const hold = await t.holdAt('update', 'timers', first?.jobId ?? '')
  const promoting = b.promote()
  await t.untilBlocked()
  await a.jobs.trigger(second?.jobId ?? '')
  await hold.release()
  await promoting
  for (const shard of [0, 1]) b.engine.reader.want(shard, b.clock.now())
  await b.readTimers()
  await b.promote()
  const runs = await t.query('select job_id, cause, state from runs order by job_id, cause')
  expect(runs).toEqual(
    [
      { job_id: first?.jobId, cause: 0, state: RUN_STATE.ready },
      { job_id: second?.jobId, cause: 0, state: RUN_STATE.blocked },
      { job_id: second?.jobId, cause: 2, state: RUN_STATE.ready },
    ].sort((one, other) => ((one.job_id ?? '') < (other.job_id ?? '') ? -1 : 1) || one.cause - other.cause),
  )
})

test('a trigger that waits until the time before it is decided under buffer_one is refused, since one waits already', async () => {
  const t = await begun('buffer_one')
  await t.come(t.b, 10)
  t.a.clock.advance(5)
  const hold = await t.holdAt('insert', 'runs', t.jobId)
  const promoting = t.b.jobs.update(t.jobId, { payload: 2 })
  await t.untilBlocked()
  const refused = expect(t.a.jobs.trigger(t.jobId)).rejects.toMatchObject({ code: 'overlap' })
  await t.untilBlocked(2)
  await hold.release()
  await Promise.all([promoting, refused])
  expect(await t.states()).toEqual([
    [10, 'leased'],
    [20, 'blocked'],
  ])
})

test('a promotion that waits for a trigger under buffer_one skips its time, since one waits already', async () => {
  const t = await begun('buffer_one')
  await t.come(t.b, 10)
  t.a.clock.advance(5)
  const hold = await t.holdAt('insert', 'runs', t.jobId)
  const triggering = t.a.jobs.trigger(t.jobId)
  await t.untilBlocked()
  await t.b.promote()
  await hold.release()
  expect(await triggering).toMatchObject({ status: 'blocked' })
  await t.read(t.b)
  await t.b.promote()
  expect(await t.query('select cause, state from runs where state = 3')).toEqual([{ cause: 2, state: 3 }])
  expect(await t.query('select from_nominal, reason from skips')).toEqual([
    { from_nominal: nominal(20), reason: SKIP_REASON.overlap },
  ])
})

test('two who wake the same job at once make one run ready', async () => {
  const t = await begun('buffer_all')
  for (let i = 0; i < 3; i++) {
    await t.come(t.a, 10)
    await t.a.promote()
  }
  await t.finish()
  const hold = await t.holdAt('update', 'runs', t.jobId)
  t.b.engine.waking.jobs.look(t.jobId)
  const waking = t.wake(t.a)
  await t.untilBlocked()
  expect((await t.wake(t.b)).woken).toBe(0)
  await hold.release()
  expect((await waking).woken).toBe(1)
  expect((await t.wake(t.b)).woken).toBe(0)
  expect((await t.states()).map(([, state]) => state)).toEqual(['ready', 'blocked', 'blocked'])
})

test('two who wake a completed job at once make one run ready, though it has no timer any more', async () => {
  const t = await begun('buffer_all', { maxRuns: 3 })
  for (let i = 0; i < 2; i++) {
    await t.come(t.a, 10)
    await t.a.promote()
  }
  expect(await t.query('select from timers')).toEqual([])
  await t.finish()
  const hold = await t.holdAt('update', 'runs', t.jobId)
  t.b.engine.waking.jobs.look(t.jobId)
  const waking = t.wake(t.a)
  await t.untilBlocked()
  expect((await t.wake(t.b)).woken).toBe(0)
  await hold.release()
  expect((await waking).woken).toBe(1)
  expect((await t.wake(t.b)).woken).toBe(0)
  expect((await t.states()).map(([, state]) => state)).toEqual(['ready', 'blocked'])
})

test('a run that is opened again while another is being woken waits behind it', async () => {
  const t = await begun('buffer_all', { retry: { maxAttempts: 1 } })
  // A run of an earlier time died.
  await t.query(
    `insert into dead_letters (nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority, cause,
       delivery, one_off) select nominal_at - interval '5 minutes', due_at, due_at, job_id, tenant_id, queue_id, 1, 1, 1, timeout_ms, shard, 5, 0, 0, false from runs`,
  )
  await t.come(t.a, 10)
  await t.a.promote()
  await t.finish()
  const hold = await t.holdAt('update', 'runs', t.jobId)
  const waking = t.wake(t.a)
  await t.untilBlocked()
  const opening = t.b.runs.retry(`${t.jobId}.${(START + 5 * MINUTE).toString(36)}`)
  await t.untilBlocked(2)
  await hold.release()
  await Promise.all([waking, opening])
  expect(await t.states()).toEqual([
    [5, 'blocked'],
    [20, 'ready'],
  ])
})

test('a wake-up that waits for a redrive wakes the older of the two', async () => {
  const t = await begun('buffer_all', { retry: { maxAttempts: 1 } })
  await t.query(
    `insert into dead_letters (nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority, cause,
       delivery, one_off) select nominal_at - interval '5 minutes', due_at, due_at, job_id, tenant_id, queue_id, 1, 1, 1, timeout_ms, shard, 5, 0, 0, false from runs`,
  )
  await t.come(t.a, 10)
  await t.a.promote()
  const hold = await t.holdAt('insert', 'runs', t.jobId)
  const opening = t.b.runs.retry(`${t.jobId}.${(START + 5 * MINUTE).toString(36)}`)
  await t.untilBlocked()
  await t.finish()
  expect((await t.wake(t.a)).woken).toBe(0)
  await hold.release()
  await opening
  expect((await t.wake(t.a)).woken).toBe(1)
  expect(await t.states()).toEqual([
    [5, 'ready'],
    [20, 'blocked'],
  ])
})

test('a cancel of the live run and the end of it wake the next one once', async () => {
  const t = await begun('buffer_all')
  for (let i = 0; i < 2; i++) {
    await t.come(t.a, 10)
    await t.a.promote()
  }
  const hold = await t.holdAt('delete', 'runs', t.jobId)
  const ending = t.finish()
  await t.untilBlocked()
  const canceling = t.b.runs.cancel(`${t.jobId}.${(START + 10 * MINUTE).toString(36)}`)
  const answered = canceling.catch((error: { code: string }) => error.code)
  await t.untilBlocked(2)
  await hold.release()
  await ending
  expect(await answered).toBe('already_finished')
  expect((await t.wake(t.a)).woken + (await t.wake(t.b)).woken).toBe(1)
  expect(await t.states()).toEqual([
    [20, 'ready'],
    [30, 'blocked'],
  ])
})

test('a claim that takes a run while cancel_running is about to end it is asked to stop', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create({ ...EVERY_TEN, overlap: 'cancel_running' })
  for (const node of [a, b]) node.clock.advance(10 * MINUTE)
  await b.readTimers()
  await b.promote()
  const seen: Date[] = []
  await a.handle('reports', (run) => {
    seen.push(run.nominalAt)
    return new Promise(() => {})
  })
  const queueId = await a.engine.registry.queueId(1, 'reports')
  a.engine.handlers.hint(queueId, 5, Number.MIN_SAFE_INTEGER)
  for (const node of [a, b]) node.clock.advance(10 * MINUTE)
  for (const shard of [0, 1]) b.engine.reader.want(shard, b.clock.now())
  await b.readTimers()
  const hold = await t.holdAt('update', 'runs', jobId)
  const claiming = a.claim('reports')
  await t.untilBlocked()
  // An update decides what is due, as promotion does, and waits longer for a row.
  const promoting = b.jobs.update(jobId, { payload: 2 })
  await t.untilBlocked(2)
  await hold.release()
  await Promise.all([claiming, promoting])
  expect(await t.query('select nominal_at, state, cancel_requested from runs order by nominal_at')).toEqual([
    { nominal_at: nominal(10), state: RUN_STATE.leased, cancel_requested: true },
    { nominal_at: nominal(20), state: RUN_STATE.blocked, cancel_requested: false },
  ])
  expect(seen).toEqual([nominal(10)])
})

/** As a batch takes its rows. */
function inLockOrder(one: { jobId: string }, other: { jobId: string }): number {
  const shard = ({ jobId }: { jobId: string }) => jobId.slice(15, 18)
  return shard(one).localeCompare(shard(other)) || (one.jobId < other.jobId ? -1 : 1)
}
