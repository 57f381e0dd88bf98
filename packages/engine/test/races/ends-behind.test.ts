import { expect, test } from 'vitest'
import { setup } from './setup.ts'

test('while more has ended than can be written, a node begins nothing more', async () => {
  const t = await setup()
  const node = await t.startNode()
  let isBehind = true
  Object.defineProperty(node.engine.finisher, 'isBehind', { get: () => isBehind })
  const seen: string[] = []
  await node.handle('work', (run) => {
    seen.push(run.jobId)
  })
  await node.jobs.create({ queue: 'work', payload: 1 })
  await node.jobs.create({ queue: 'work', payload: 1, delivery: 'at_most_once' })
  await node.claim('work')
  expect(seen).toEqual([])
  const queueId = await node.engine.registry.queueId(1, 'work')
  const due = { queueId, delivery: 0, dueAt: node.clock.now() }
  expect(node.engine.handlers.admit(due)).toBe('ready')
  isBehind = false
  await node.claim('work')
  await node.engine.handlers.settled()
  expect(seen).toHaveLength(2)
})
