import { expect, onTestFinished, test } from 'vitest'
import { startWorker, startWorkerServer } from './worker-kit.ts'

const BEFORE = 500
const BEHIND = 4_000

test('a run that may be performed at most once gets its slot while short work is leased ahead all the time', async () => {
  const server = await startWorkerServer()
  onTestFinished(() => server.stop())
  const { belfry, client } = server
  await belfry.jobs.createMany(Array(BEFORE).fill({ queue: 'work' }))
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
      if (begun === 100) {
        await belfry.jobs.create({ queue: 'work', payload: 'once', delivery: 'at_most_once' })
        await belfry.jobs.createMany(Array(BEHIND).fill({ queue: 'work' }))
      }
      if (run.payload === 'once') place = begun
      if (begun === BEFORE + 1 + BEHIND) allDone()
      await new Promise((resolve) => setImmediate(resolve))
    },
  })
  await done
  expect(place).toBeGreaterThan(0)
  expect(place).toBeLessThan(BEFORE + BEHIND / 2)
})
