import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry } from '../../src/index.ts'
import { createDatabase, today } from '../database.ts'

const MANY = 6_000
type Job = Parameters<Belfry['jobs']['create']>[0]

/** Performs many short runs, four at a time, and one that may be performed once; answers at which place that one began. */
async function placeOfOnce(once: Job, when: 'created among them' | 'created while they run'): Promise<number> {
  const { schema, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  const belfry = await Belfry.start({ database: inject('postgres'), schema })
  onTestFinished(() => belfry.stop())
  const short = Array<Job>(MANY / 2).fill({ queue: 'work' })
  await belfry.jobs.createMany(short)
  if (when === 'created among them') await belfry.jobs.create(once)
  await belfry.jobs.createMany(short)
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
      if (begun === 500 && when === 'created while they run') await belfry.jobs.create(once)
      if (run.payload === 'once') place = begun
      if (begun === MANY + 1) allDone()
      await new Promise((resolve) => setImmediate(resolve))
    },
    { concurrency: 4 },
  )
  await done
  return place
}

test('a run that may be performed at most once gets its slot in its turn while short work is leased ahead all the time', async () => {
  const place = await placeOfOnce({ queue: 'work', payload: 'once', delivery: 'at_most_once' }, 'created among them')
  expect(place).toBeGreaterThan(MANY / 2)
  expect(place).toBeLessThan(MANY)
})

test('an urgent one gets a slot though all of them are leased ahead when it comes', async () => {
  const place = await placeOfOnce(
    { queue: 'work', payload: 'once', delivery: 'at_most_once', priority: 9 },
    'created while they run',
  )
  expect(place).toBeGreaterThan(500)
  expect(place).toBeLessThan(MANY)
})
