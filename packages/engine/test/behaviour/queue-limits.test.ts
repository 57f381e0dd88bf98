import { expect, test } from 'vitest'
import { payloads, START, setup } from '../concurrency-kit.ts'

test('runs of a queue start at its rate, within 2 % over some seconds and two nodes, and never more at once than the burst', async () => {
  const t = await setup()
  const nodes = [await t.startNode(), await t.startNode()]
  const [one] = nodes as [(typeof nodes)[number], ...typeof nodes]
  for (const node of nodes) await node.handle('work', 1_000)
  await one.limit('work', { rateLimit: { limit: 200, period: 'PT1S', burst: 10 } })
  await one.jobs.createMany(payloads('work', 800))
  for (const node of nodes) await node.pulse()
  const started: number[] = []
  for (let ms = 0; ms <= 3_000; ms += 20) {
    await Promise.all(nodes.map((node) => node.claim('work')))
    for (const node of nodes) {
      started.push(...node.held.map(() => ms))
      await node.end(node.held.length)
      node.clock.advance(20)
    }
  }
  const tooEarly = started.filter((ms, i) => i + 1 > 10 + ms / 5)
  expect(tooEarly).toEqual([])
  expect(started.length).toBeGreaterThanOrEqual(0.98 * 600)
  expect(started.length).toBeLessThanOrEqual(610)
})

test('a claimer whose queue has used up its rate sleeps until the next one may start', async () => {
  const t = await setup()
  const node = await t.startNode()
  await node.handle('work')
  await node.limit('work', { rateLimit: { limit: 1, period: 'PT10S' } })
  await node.jobs.createMany(payloads('work', 3))
  await node.pulse()
  await node.claim('work')
  expect(node.held).toHaveLength(1)
  node.clock.advance(9_999)
  expect(node.engine.known.limited.isClosed(await node.engine.registry.queueId(1, 'work'))).toBe(true)
  await node.claim('work')
  expect(node.held).toHaveLength(1)
  node.clock.advance(1)
  await node.claim('work')
  expect(node.held).toHaveLength(2)
})

test('a slot that becomes free on one node wakes the claimer of another', async () => {
  const t = await setup()
  const [one, other] = [await t.startNode(), await t.startNode()]
  for (const node of [one, other]) await node.handle('work')
  await one.limit('work', { maxRunning: 1 })
  await one.jobs.createMany(payloads('work', 2))
  for (const node of [one, other]) await node.pulse()
  await one.claim('work')
  await other.claim('work')
  const { limited: queues } = other.engine.known
  const queueId = await other.engine.registry.queueId(1, 'work')
  expect([other.held.length, queues.isClosed(queueId)]).toEqual([0, true])
  await one.end(1)
  other.engine.wakeups.receive(one.engine.wakeups.take() ?? '')
  expect(queues.isClosed(queueId)).toBe(false)
  await other.claim('work')
  expect(other.held).toHaveLength(1)
})

test('limits are shown, changed one by one, written to the audit, and refused in words', async () => {
  const t = await setup()
  const { tenant } = await t.startNode()
  const { queues } = tenant
  await queues.put('work', { maxRunning: 5, rateLimit: { limit: 100, period: '1s' } })
  const limits = { maxRunning: 5, rateLimit: { limit: 100, period: 'PT1S', burst: 100 } }
  expect(await queues.get('work')).toMatchObject(limits)
  expect((await queues.list()).items.find(({ name }) => name === 'work')).toMatchObject(limits)
  await queues.put('work', { rateLimit: null })
  expect(await queues.get('work')).toMatchObject({ maxRunning: 5, rateLimit: null })
  await queues.put('http', { maxRunning: 1_000_000 })
  expect(await queues.get('http')).toMatchObject({ maxRunning: 1_000_000 })
  for (const bad of [{ maxRunning: 0 }, { maxRunning: -1 }, { maxRunning: 1.5 }, { maxRunning: 1_000_001 }])
    await expect(queues.put('work', bad)).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(queues.put('work', { rateLimit: { limit: 1, period: '10ms' } })).rejects.toMatchObject({
    complaints: [{ path: 'rateLimit.period' }],
  })
  expect(
    await t.query(
      `select before ->> 'maxRunning' as was, after ->> 'maxRunning' as is from job_changes where subject_id = 'work'`,
    ),
  ).toEqual([
    { was: null, is: '5' },
    { was: '5', is: '5' },
  ])
  await queues.delete('work')
  await queues.put('work')
  expect(await queues.get('work')).toMatchObject({ maxRunning: null, rateLimit: null })
})

test('a run that waits because of the limit of its queue is explained in words', async () => {
  const t = await setup()
  const node = await t.startNode()
  await node.handle('work')
  await node.limit('work', { maxRunning: 1 })
  const [, second] = await node.jobs.createMany(payloads('work', 2))
  await node.pulse()
  await node.claim('work')
  const waits =
    (await t.query<{ job_id: string }>('select job_id from runs where state = 0'))[0]?.job_id ?? second?.jobId ?? ''
  expect(await node.tenant.jobs.explain(waits, new Date(START))).toMatchObject({
    verdict: 'waiting',
    reason: 'queue_limited',
    sentence: expect.stringContaining('the queue work is limited to 1 run at a time, and so many are under way'),
  })
})
