import { expect, test } from 'vitest'
import { startLossyProxy } from './lossy-proxy.ts'
import { MINUTE, START, setup } from './setup.ts'

const WORK = { queue: 'work', payload: 1 } as const

async function setupBehindProxy() {
  const t = await setup()
  const proxy = await startLossyProxy()
  const node = await t.startNode(proxy.connection)
  const other = await t.startNode()
  const performed: string[] = []
  const perform = () => node.handle('work', (run) => void performed.push(run.id))
  /** Leased runs, as everybody sees them. */
  const leased = async () => (await t.query('select from runs where state = 1')).length
  return { ...t, proxy, node, other, performed, perform, leased }
}

test('runs whose claim was committed and whose answer was lost are adopted, each performed once', async () => {
  const t = await setupBehindProxy()
  await t.perform()
  await t.node.jobs.createMany(Array(5).fill(WORK))
  const lost = t.proxy.lose('claim_runs', 'answered')
  const claiming = t.node.claim('work')
  await lost
  expect(await t.leased()).toBe(5)
  t.proxy.goOn()
  await claiming
  await t.node.engine.handlers.settled()
  expect(new Set(t.performed).size).toBe(5)
  expect(t.performed).toHaveLength(5)
  expect(await t.query('select number from attempts')).toEqual(Array(5).fill({ number: 1 }))
})

test('a claim that commits after its connection was lost is adopted, and nothing is doubled', async () => {
  const t = await setupBehindProxy()
  await t.perform()
  const [first] = await t.node.jobs.createMany(Array(5).fill(WORK))
  const hold = await t.holdAt('update', 'runs', first?.jobId ?? '')
  const lost = t.proxy.lose('claim_runs', 'sent')
  const claiming = t.node.claim('work')
  await lost
  await t.untilBlocked()
  await hold.release()
  await expect.poll(t.leased, { interval: 5 }).toBe(5)
  t.proxy.goOn()
  await claiming
  await t.node.engine.handlers.settled()
  expect(t.performed).toHaveLength(5)
  expect(await t.query('select number from attempts')).toEqual(Array(5).fill({ number: 1 }))
})

test('a claim that is still at work when its connection is lost is ended, and its runs are claimed again', async () => {
  const t = await setupBehindProxy()
  await t.perform()
  const [first] = await t.node.jobs.createMany(Array(5).fill(WORK))
  const hold = await t.holdAt('update', 'runs', first?.jobId ?? '')
  const lost = t.proxy.lose('claim_runs', 'sent')
  const claiming = t.node.claim('work')
  await lost
  await t.untilBlocked()
  t.proxy.goOn()
  // Only the end of that backend lets the claim go on: nobody has released it.
  await claiming
  await t.untilBlocked(0)
  expect(t.performed).toEqual([])
  expect(await t.leased()).toBe(0)
  await hold.release()
  await t.node.claim('work')
  await t.node.engine.handlers.settled()
  expect(t.performed).toHaveLength(5)
  expect(await t.query('select number from attempts')).toEqual(Array(5).fill({ number: 1 }))
})

test.each([
  ['recurring', { ...WORK, every: 'PT10M', startAt: new Date(START + 10 * MINUTE) }, 'promote_recurring'],
  ['one-off', { ...WORK, delay: '10m' }, 'promote_one_offs'],
])('%s runs that were born leased and whose answer was lost are adopted', async (_, job, statement) => {
  const t = await setupBehindProxy()
  await t.perform()
  await t.node.jobs.createMany(Array(5).fill(job))
  t.node.clock.advance(10 * MINUTE)
  await t.node.readTimers()
  const lost = t.proxy.lose(statement, 'answered')
  const promoting = t.node.promote()
  await lost
  expect(await t.leased()).toBe(5)
  t.proxy.goOn()
  await promoting
  await t.node.readTimers()
  await t.node.promote()
  await expect.poll(() => t.performed.length, { interval: 5 }).toBe(5)
  await t.node.engine.handlers.settled()
  expect(new Set(t.performed).size).toBe(5)
  expect(await t.occurrences()).toHaveLength(5)
})

test('a finish whose answer was lost is sent again and told ok, and history has it once', async () => {
  const t = await setupBehindProxy()
  await t.perform()
  await t.node.jobs.createMany(Array(3).fill(WORK))
  const lost = t.proxy.lose('finish_succeeded', 'answered')
  await t.node.claim('work')
  await lost
  t.proxy.goOn()
  await t.node.engine.handlers.settled()
  expect(await t.query('select number from attempts')).toEqual(Array(3).fill({ number: 1 }))
  expect(await t.query('select from runs')).toEqual([])
})

test.each([
  ['immediate', WORK, 'put_immediate_jobs'],
  ['delayed', { ...WORK, delay: '10m' }, 'put_delayed_jobs'],
  ['recurring', { ...WORK, every: 'PT10M', maxRuns: 1, startAt: new Date(START + 10 * MINUTE) }, 'put_recurring_jobs'],
])(
  'an %s create whose answer was lost and is sent again after its run has finished doubles nothing',
  async (_, job, statement) => {
    const t = await setupBehindProxy()
    const performed: string[] = []
    await t.other.handle('work', (run) => void performed.push(run.jobId))
    // Known already, so that the create is a single statement.
    await t.node.engine.registry.queueId(await t.node.engine.registry.tenantId('default'), 'work')
    const lost = t.proxy.lose(statement, 'answered')
    const creating = t.node.jobs.create(job)
    await lost
    const run = async () => {
      t.other.clock.advance(10 * MINUTE)
      t.other.engine.pulse.sweepNext()
      await t.other.engine.pulse.runOnce()
      t.other.engine.reader.own([0, 1])
      for (const shard of [0, 1]) t.other.engine.reader.want(shard, START)
      await t.other.readTimers()
      await t.other.promote()
      t.other.engine.pulse.sweepNext()
      await t.other.engine.pulse.runOnce()
      await t.other.claim('work')
      await t.other.engine.handlers.settled()
    }
    await run()
    expect(performed).toHaveLength(1)
    t.proxy.goOn()
    const { jobId, deduplicated } = await creating
    expect([jobId, deduplicated]).toEqual([performed[0], false])
    await run()
    expect(performed).toHaveLength(1)
    expect(await t.occurrences()).toHaveLength(1)
  },
)

test.each([
  ['an idempotency key', { ...WORK, idempotencyKey: 'order-17' }],
  ['a name', { ...WORK, name: 'order-17', delay: '1h' }],
])('a create with %s whose commit was not answered is sent again and makes one job', async (_, job) => {
  const t = await setupBehindProxy()
  const lost = t.proxy.lose('commit', 'answered')
  const creating = t.node.jobs.create(job)
  await lost
  t.proxy.goOn()
  const { jobId, deduplicated } = await creating
  expect(deduplicated).toBe(false)
  expect(await t.query('select job_id from keys')).toEqual([{ job_id: jobId }])
  expect(await t.query('select job_id from runs union all select job_id from timers')).toEqual([{ job_id: jobId }])
})

test('a create whose caller sends it again through another node after a lost commit answers the same job', async () => {
  const t = await setupBehindProxy()
  const job = { ...WORK, idempotencyKey: 'order-17' }
  const lost = t.proxy.lose('commit', 'answered')
  const first = t.node.jobs.create(job)
  await lost
  const second = await t.other.jobs.create(job)
  expect(second.deduplicated).toBe(true)
  t.proxy.goOn()
  expect((await first).jobId).toBe(second.jobId)
  expect(await t.query('select from runs')).toHaveLength(1)
})

test('a create whose connection is lost within its transaction does not meet itself as in progress', async () => {
  const t = await setupBehindProxy()
  const lost = t.proxy.lose('put_immediate_jobs', 'answered')
  const creating = t.node.jobs.create({ ...WORK, idempotencyKey: 'order-17' })
  await lost
  // The transaction that is left behind holds the key for five seconds; the create is sent again until it is gone.
  t.proxy.goOn()
  expect(await creating).toMatchObject({ deduplicated: false })
  expect(await t.query('select from runs')).toHaveLength(1)
})

test('a create whose measure of the queue was lost is not refused for that, and the limit still holds', async () => {
  const t = await setupBehindProxy()
  await t.node.jobs.create(WORK)
  await t.query('update queues set max_depth = 3')
  await t.node.engine.pulse.runOnce()
  const lost = t.proxy.lose('measure_queues', 'answered')
  const creating = t.node.jobs.create(WORK)
  await lost
  t.proxy.goOn()
  const { jobId } = await creating
  expect(await t.query('select from specs where job_id = $1', [jobId])).toHaveLength(1)
  await t.node.jobs.create(WORK)
  await expect(t.node.jobs.create(WORK)).rejects.toMatchObject({ code: 'queue_full' })
})
