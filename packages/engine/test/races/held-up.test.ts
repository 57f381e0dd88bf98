import { expect, test } from 'vitest'
import { payloads, START, setup } from '../concurrency-kit.ts'

test('a pause whose row another transaction holds keeps no other run from being woken', async () => {
  const t = await setup()
  const node = await t.startNode()
  await node.handle('work', 5)
  await node.jobs.createMany(payloads('work', 1))
  const { pause } = await node.tenant.pauses.create({ origin: 'https://example.com' })
  await node.tenant.pauses.end(pause.id ?? '')
  node.clock.advance(10_000)
  const other = await t.pool.connect()
  await other.query('begin; select from pauses for update')
  await node.pulse()
  // It ends while the row is held.
  await node.engine.waking.runOnce()
  await other.query('rollback')
  other.release()
  expect(await t.query('select from pauses')).toHaveLength(1)
  node.clock.advance(1_000)
  await node.pulse()
  await node.engine.waking.runOnce()
  expect(await t.query('select from pauses')).toEqual([])
})

test('due runs of a queue that has room do not wait behind those of a queue that is full', async () => {
  const t = await setup()
  const node = await t.startNode()
  await node.handle('slow', 10)
  await node.handle('quick', 100)
  // A third queue is busy: ends of this node are always on their way.
  Object.defineProperty(node.engine.finisher, 'isWriting', { get: () => true })
  const runAt = (ms: number) => new Date(START + ms)
  await node.jobs.createMany(Array(200).fill({ queue: 'slow', payload: 1, timeout: '1h', runAt: runAt(2_000) }))
  await node.jobs.createMany(Array(20).fill({ queue: 'quick', payload: 1, timeout: '1h', runAt: runAt(2_001) }))
  node.clock.advance(1_900)
  await node.readTimers()
  node.clock.advance(101)
  const quick = await node.engine.registry.queueId(1, 'quick')
  const started = () => node.held.filter(({ run }) => run.lease.queueId === quick).length
  let ms = 0
  for (; ms <= 7_000; ms += 100) {
    await node.engine.promoter.runOnce()
    await new Promise((resolve) => setImmediate(resolve))
    if (started() === 20) break
    // Each slow run takes a second: of ten slots one becomes free every 100 ms.
    const i = node.held.findIndex(({ run }) => run.lease.queueId !== quick)
    if (i >= 0) node.held.splice(i, 1)[0]?.end()
    await new Promise((resolve) => setImmediate(resolve))
    node.clock.advance(100)
  }
  expect(ms).toBe(0)
})
