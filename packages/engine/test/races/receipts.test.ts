import { expect, test } from 'vitest'
import { dropExpired } from '../../src/history/drop-expired.ts'
import { parseRunId } from '../../src/job/ids.ts'
import { OUTCOME } from '../../src/job/states.ts'
import { getQueue } from '../../src/lookup/queues.sql.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { DAY_MS } from '../../src/schedule/duration.ts'
import { startLossyProxy } from './lossy-proxy.ts'
import { claimed, LEASE_MS, MANY } from './packed.ts'
import { START, setup } from './setup.ts'

const throwing = (): never => {
  throw new Error('no')
}

async function setupClaimed() {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  const packed = await claimed(node)
  const history = () =>
    t.query<{ number: number; outcome: number; n: number }>(
      'select number, outcome, count(*)::int as n from attempts group by 1, 2 order by 1, 2',
    )
  const count = async (what: string) => (await t.query<{ n: number }>(`select count(*)::int as n from ${what}`))[0]?.n
  return { ...t, node, other, ...packed, history, count }
}

const succeeded = (n: number) => ({ number: 1, outcome: OUTCOME.succeeded, n })

test('a large claim leaves one receipt and no rows, and every one of its runs is seen as running', async () => {
  const t = await setupClaimed()
  expect(t.runs.size).toBe(MANY)
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([0, 1])
  const { run } = t.of(7)
  expect(await t.node.runs.get(run.id)).toMatchObject({ status: 'running', attempt: 1, failures: 0, attempts: [] })
  expect(await t.node.jobs.get(run.jobId)).toMatchObject({ status: 'active' })
  const ofJob = await t.node.runs.list({ jobId: run.jobId })
  expect(ofJob.items).toMatchObject([{ id: run.id, status: 'running' }])
  const all = await t.node.runs.list({ limit: 500 })
  expect(all.items).toHaveLength(MANY)
  expect(new Set(all.items.map((one) => one.status))).toEqual(new Set(['running']))
  const queue = await getQueue({ db: t.node.db, engineDb: t.node.db }, { tenantId: 1, now: START }, 'work')
  expect(queue?.depth).toEqual({ ready: 0, running: MANY, waiting: 0, isComplete: true })
})

test('its runs end once each, and the receipt goes', async () => {
  const t = await setupClaimed()
  t.of(0).end()
  await t.node.engine.handlers.settled()
  expect(await t.node.runs.get(t.of(0).run.id)).toMatchObject({ status: 'succeeded', attempts: [{ number: 1 }] })
  const queue = await getQueue({ db: t.node.db, engineDb: t.node.db }, { tenantId: 1, now: START }, 'work')
  expect(queue?.depth.running).toBe(MANY - 1)
  await t.endAll()
  await t.node.engine.keeper.runOnce()
  expect(await t.history()).toEqual([succeeded(MANY)])
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([0, 0])
})

test('what a dead node had not ended is performed again, and what it had ended is not', async () => {
  const t = await setupClaimed()
  for (let i = 0; i < 50; i++) t.of(i).end()
  await t.node.engine.handlers.settled()
  t.other.clock.advance(LEASE_MS - 1)
  expect(await t.other.reap()).toBe(0)
  expect(await t.count('receipts')).toBe(1)
  t.other.clock.advance(1)
  expect(await t.other.reap()).toBe(MANY - 50)
  const again = await claimed(t.other, [])
  expect(again.runs.size).toBe(MANY - 50)
  expect(new Set([...again.runs.values()].map(({ run }) => run.attempt))).toEqual(new Set([2]))
  await again.endAll()
  // The dead node was only away: what it says now is refused.
  await t.endAll()
  expect(await t.history()).toEqual([
    succeeded(50),
    { number: 1, outcome: OUTCOME.failed, n: MANY - 50 },
    { number: 2, outcome: OUTCOME.succeeded, n: MANY - 50 },
  ])
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([0, 0])
})

test('a receipt that was left behind when all its runs had ended is found to be empty', async () => {
  const t = await setupClaimed()
  await t.endAll()
  expect(await t.count('receipts')).toBe(1)
  t.other.clock.advance(LEASE_MS)
  expect(await t.other.reap()).toBe(0)
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([0, 0])
  expect(await t.history()).toEqual([succeeded(MANY)])
})

test('whoever takes a receipt apart waits for the ends that are under way, and does not open them again', async () => {
  const t = await setupClaimed()
  const hold = await t.holdAt('insert', 'attempts', t.of(3).run.jobId)
  for (let i = 0; i < 10; i++) t.of(i).end()
  const settled = t.node.engine.handlers.settled()
  await t.untilBlocked()
  const canceling = t.other.runs.cancel(t.of(50).run.id)
  await t.untilBlocked(2)
  await hold.release()
  await settled
  expect(await canceling).toEqual({ status: 'canceling' })
  expect(await t.history()).toEqual([succeeded(10)])
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([MANY - 10, 0])
})

test('a reaper passes over a receipt whose runs are just ending, and finds those that have not', async () => {
  const t = await setupClaimed()
  const hold = await t.holdAt('insert', 'attempts', t.of(3).run.jobId)
  for (let i = 0; i < 10; i++) t.of(i).end()
  const settled = t.node.engine.handlers.settled()
  await t.untilBlocked()
  t.other.clock.advance(LEASE_MS)
  expect(await t.other.reap()).toBe(0)
  await hold.release()
  await settled
  expect(await t.other.reap()).toBe(MANY - 10)
  expect(await t.history()).toEqual([succeeded(10), { number: 1, outcome: OUTCOME.failed, n: MANY - 10 }])
})

test('an end that comes while its receipt is taken apart is written by its row', async () => {
  const t = await setupClaimed()
  const hold = await t.holdAt('insert', 'runs', t.of(3).run.jobId)
  const canceling = t.other.runs.cancel(t.of(9).run.id)
  await t.untilBlocked()
  for (let i = 0; i < 5; i++) t.of(i).end()
  const settled = t.node.engine.handlers.settled()
  await hold.release()
  expect(await canceling).toEqual({ status: 'canceling' })
  await settled
  expect(await t.history()).toEqual([succeeded(5)])
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([MANY - 5, 0])
})

test('whoever holds a receipt for long keeps nobody else from ending, being kept or being reaped', async () => {
  const t = await setupClaimed()
  const rows = await t.node.jobs.createMany(Array(3).fill({ queue: 'work', payload: 1 }))
  await t.node.claim('work')
  const client = await t.connect()
  await client.query('begin')
  const awaited = t.of(3).run.jobId
  await t.other.jobs.create({ queue: 'later', payload: 1, after: { jobs: [awaited] } }, { tx: client })
  // Batches enough for all lanes, before each of the others and between them.
  for (const [n, { jobId }] of rows.entries()) {
    for (let i = 0; i < 3; i++) {
      t.of(3 * n + i).end()
      await new Promise((resolve) => setImmediate(resolve))
    }
    t.runs.get(jobId)?.end()
    await expect.poll(t.history).toEqual([succeeded(n + 1)])
  }
  t.node.clock.advance(LEASE_MS / 2)
  await t.node.engine.keeper.runOnce()
  t.other.clock.advance(LEASE_MS)
  expect(await t.other.reap()).toBe(0)
  await client.query('commit')
  await t.node.engine.handlers.settled()
  expect(await t.history()).toEqual([succeeded(12)])
  expect(await t.query('select job_id from outbox')).toEqual([{ job_id: awaited }])
  expect(await t.count('receipts')).toBe(0)
})

test('one run of a receipt can be canceled; its handler is told, and the others go on', async () => {
  const t = await setupClaimed()
  const { run } = t.of(5)
  expect(await t.other.jobs.cancel(run.jobId)).toEqual({ status: 'canceled' })
  t.node.clock.advance(LEASE_MS / 2)
  await t.node.engine.keeper.runOnce()
  expect(run.signal.reason).toBe('canceled')
  await t.endAll()
  expect(await t.history()).toEqual([succeeded(MANY - 1), { number: 1, outcome: OUTCOME.canceled, n: 1 }])
})

test('a cancel that waits for a large claim asks the run to stop', async () => {
  const t = await setup()
  const node = await t.startNode()
  const jobs = await node.jobs.createMany(Array(MANY).fill({ queue: 'work', payload: 1 }))
  const one = jobs[8]?.jobId ?? ''
  const hold = await t.holdAt('delete', 'runs', one)
  const claiming = claimed(node, [])
  await t.untilBlocked()
  const canceling = node.jobs.cancel(one)
  await t.untilBlocked(2)
  await hold.release()
  const { runs, endAll } = await claiming
  expect(await canceling).toEqual({ status: 'canceled' })
  node.clock.advance(LEASE_MS / 2)
  await node.engine.keeper.runOnce()
  expect(runs.get(one)?.run.signal.reason).toBe('canceled')
  await endAll()
  expect(await t.query('select outcome from attempts where job_id = $1', [one])).toEqual([
    { outcome: OUTCOME.canceled },
  ])
})

test('a run that fails waits for its backoff as a row, and ends by its second attempt', async () => {
  const t = await setupClaimed()
  t.of(0).end(throwing)
  t.of(1).end()
  await t.node.engine.handlers.settled()
  expect(await t.query('select state, attempt, failures from runs')).toEqual([{ state: 2, attempt: 1, failures: 1 }])
  expect(await t.node.runs.get(t.of(0).run.id)).toMatchObject({ status: 'waiting', failures: 1 })
  await t.endAll()
  t.node.clock.advance(DAY_MS / 24)
  await t.node.engine.waker.runOnce()
  await t.node.claim('work')
  expect(t.of(0).run.attempt).toBe(2)
  await t.endAll()
  expect(await t.history()).toEqual([
    succeeded(MANY - 1),
    { number: 1, outcome: OUTCOME.failed, n: 1 },
    { number: 2, outcome: OUTCOME.succeeded, n: 1 },
  ])
})

test('long work gets rows by its first heartbeat, and keeps its leases', async () => {
  const t = await setupClaimed()
  for (let i = 0; i < 100; i++) t.of(i).end()
  await t.node.engine.handlers.settled()
  for (let i = 0; i < 4; i++) {
    t.node.clock.advance(LEASE_MS / 2)
    await t.node.engine.keeper.runOnce()
  }
  await t.node.engine.keeper.runOnce()
  t.other.clock.advance(LEASE_MS * 2)
  expect(await t.other.reap()).toBe(0)
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([MANY - 100, 0])
  await t.endAll()
  expect(await t.history()).toEqual([succeeded(MANY)])
})

test('a heartbeat that is under way when the handler ends does not leave a second life behind', async () => {
  const t = await setupClaimed()
  const { run, end } = t.of(2)
  const hold = await t.holdAt('insert', 'runs', run.jobId)
  const beating = run.heartbeat()
  await t.untilBlocked()
  end()
  const settled = t.node.engine.handlers.settled()
  await hold.release()
  await Promise.allSettled([beating, settled])
  expect(await t.node.runs.get(run.id)).toMatchObject({ status: 'succeeded', attempts: [{ number: 1 }] })
  expect(await t.count('runs')).toBe(0)
})

test('checkpoints and completions in the own transaction work for runs of a receipt', async () => {
  const t = await setupClaimed()
  await t.of(0).run.checkpoint({ page: 3 })
  expect(await t.of(0).run.checkpoint()).toEqual({ page: 3 })
  const client = await t.connect()
  await client.query('begin')
  await t.of(1).run.completeIn(client, { done: true })
  await client.query('commit')
  await t.endAll()
  expect(await t.history()).toEqual([succeeded(MANY)])
  expect(await t.node.runs.get(t.of(1).run.id)).toMatchObject({ status: 'succeeded', result: { done: true } })
})

test('a node that stops gives back what it has not ended', async () => {
  const t = await setupClaimed()
  for (let i = 0; i < 20; i++) t.of(i).end()
  await t.node.engine.stop(0)
  expect([await t.count('runs'), await t.count('receipts')]).toEqual([MANY - 20, 0])
  expect(await t.query('select distinct attempt, failures, state from runs')).toEqual([
    { attempt: 1, failures: 0, state: 2 },
  ])
  expect(await t.history()).toEqual([succeeded(20), { number: 1, outcome: OUTCOME.released, n: MANY - 20 }])
})

test('a name stays taken while its run stands in a receipt, and is free as soon as the run has ended', async () => {
  const t = await setup()
  const node = await t.startNode()
  const jobs = Array.from({ length: MANY }, (_, i) => ({ queue: 'work', payload: 1, name: `n${i}` }))
  const packed = await claimed(node, jobs)
  const again = { queue: 'work', payload: 2, name: 'n4' }
  const first = packed.of(4).run.jobId
  await expect(node.jobs.create(again)).rejects.toMatchObject({ code: 'name_taken' })
  packed.of(4).end()
  await node.engine.handlers.settled()
  expect((await node.jobs.create(again)).jobId).not.toBe(first)
})

test('runs of a receipt whose claim was answered into a lost connection are adopted, each performed once', async () => {
  const t = await setup()
  const proxy = await startLossyProxy()
  const node = await t.startNode(proxy.connection)
  await node.jobs.createMany(Array(MANY).fill({ queue: 'work', payload: 1 }))
  const lost = proxy.lose('claim_at_least_once', 'answered')
  const claiming = claimed(node, [])
  await lost
  proxy.goOn()
  const { runs, endAll } = await claiming
  expect(runs.size).toBe(MANY)
  await endAll()
  expect(await t.query('select number from attempts')).toEqual(Array(MANY).fill({ number: 1 }))
  expect(await t.query('select from receipts')).toEqual([])
})

test.each(['answered', 'sent'] as const)(
  'ends whose statement was %s into a lost connection are in history once',
  async (when) => {
    const t = await setup()
    const proxy = await startLossyProxy()
    const node = await t.startNode(proxy.connection)
    const { of, endAll } = await claimed(node)
    const lost = proxy.lose('finish_packed_succeeded', when)
    for (let i = 0; i < 60; i++) of(i).end()
    const settled = node.engine.handlers.settled()
    await lost
    proxy.goOn()
    await settled
    await endAll()
    expect(await t.query('select number, outcome from attempts')).toEqual(
      Array(MANY).fill({ number: 1, outcome: OUTCOME.succeeded }),
    )
    expect(await t.query('select from runs')).toEqual([])
  },
)

test.each(['answered', 'sent'] as const)(
  'ends of rows that stood before those of a receipt in a batch, whose statement was %s into a lost connection, are told once',
  async (when) => {
    const t = await setup()
    const proxy = await startLossyProxy()
    const node = await t.startNode(proxy.connection)
    const plain = Array.from({ length: MANY }, () => ({ queue: 'work', payload: 1 }))
    const pairs = Array.from({ length: 10 }, (_, i) => [
      // Shorter than a lease: it stays a row.
      { ref: `parent-${i}`, queue: 'work', payload: 1, timeout: '10s' },
      { queue: 'later', payload: 1, after: { jobs: [`parent-${i}`] } },
    ])
    const { runs, endAll } = await claimed(node, [...plain, ...pairs.flat()])
    expect(runs.size).toBe(MANY + pairs.length)
    const lost = proxy.lose('finish_packed_succeeded', when)
    const ended = endAll()
    await lost
    proxy.goOn()
    await ended
    expect(await t.query('select number, outcome from attempts')).toEqual(
      Array(MANY + pairs.length).fill({ number: 1, outcome: OUTCOME.succeeded }),
    )
    expect(await t.query('select number, outcome from outbox')).toEqual(
      Array(pairs.length).fill({ number: 1, outcome: OUTCOME.succeeded }),
    )
    expect(await t.query('select from runs where holder is not null')).toEqual([])
  },
)

test('days of history stay while a receipt may have to be compared with them', async () => {
  const t = await setupClaimed()
  for (let i = 0; i < 30; i++) t.of(i).end()
  await t.node.engine.handlers.settled()
  const { node } = t
  node.clock.advance(3 * DAY_MS)
  await node.engine.partitioner.ensure()
  const keep = () => dropExpired({ db: node.db, clock: node.clock, logger: silentLogger, retentionDays: 1 })
  expect((await keep()).dropped).toEqual([])
  t.other.clock.advance(3 * DAY_MS)
  expect(await t.other.reap()).toBe(MANY - 30)
  expect((await keep()).dropped).not.toEqual([])
})

test('another tenant does not see the runs of a receipt', async () => {
  const t = await setupClaimed()
  const { run } = t.of(0)
  expect(parseRunId(run.id)).not.toBeNull()
  const client = await t.connect()
  await client.query('begin')
  await client.query(
    `set local role belfry_reader; set local search_path to "${t.schema}"; set local belfry.tenant = '2'`,
  )
  expect((await client.query('select from packed_runs')).rows).toEqual([])
  await client.query(`set local belfry.tenant = '1'`)
  expect((await client.query('select from packed_runs')).rows).toHaveLength(MANY)
  await client.query('rollback')
})
