import { expect, onTestFinished, test } from 'vitest'
import { startWorker, startWorkerServer } from './worker-kit.ts'

const MANY = 4_000

test('a run that may be performed at most once gets its slot while short work is leased ahead all the time', async () => {
  const server = await startWorkerServer()
  onTestFinished(() => server.stop())
  const { belfry, client } = server
  await belfry.jobs.createMany(Array(MANY).fill({ queue: 'work' }))
  let begun = 0
  let place = 0
  let allDone = () => {}
  const done = new Promise<void>((resolve) => {
    allDone = resolve
  })
  startWorker(client, 'work', {
    concurrency: 4,
    handler: async (run) => {
      begun++
      if (begun === 500) await belfry.jobs.create({ queue: 'work', payload: 'once', delivery: 'at_most_once' })
      if (run.payload === 'once') place = begun
      if (begun === MANY + 1) allDone()
      await new Promise((resolve) => setImmediate(resolve))
    },
  })
  await done
  expect(place).toBeGreaterThan(0)
  expect(place).toBeLessThan(MANY)
})
