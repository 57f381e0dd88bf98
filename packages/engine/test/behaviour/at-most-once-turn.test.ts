import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry } from '../../src/index.ts'
import { createDatabase, today } from '../database.ts'

const MANY = 6_000

test('a run that may be performed at most once gets its slot while short work is leased ahead all the time', async () => {
  const { schema, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  const belfry = await Belfry.start({ database: inject('postgres'), schema })
  onTestFinished(() => belfry.stop())
  await belfry.jobs.createMany(Array(MANY).fill({ queue: 'work' }))
  let begun = 0
  let place = 0
  let allDone = () => {}
  const done = new Promise<void>((resolve) => {
    allDone = resolve
  })
  belfry.handle(
    'work',
    async (run) => {
      begun++
      if (begun === 500) await belfry.jobs.create({ queue: 'work', payload: 'once', delivery: 'at_most_once' })
      if (run.payload === 'once') place = begun
      if (begun === MANY + 1) allDone()
      await new Promise((resolve) => setImmediate(resolve))
    },
    { concurrency: 4 },
  )
  await done
  expect(place).toBeGreaterThan(0)
  expect(place).toBeLessThan(MANY)
})
