import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry, type Run } from '../../src/index.ts'
import { createDatabase, today } from '../database.ts'

async function setup() {
  const { schema, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  const belfry = await Belfry.start({ database: inject('postgres'), schema })
  onTestFinished(() => belfry.stop())
  const over = async (jobId: string) => (await belfry.jobs.get(jobId))?.status !== 'active'
  const settled = async (jobs: { jobId: string }[]) => {
    for (const { jobId } of jobs) await expect.poll(() => over(jobId), { interval: 5 }).toBe(true)
  }
  const runOf = async (jobId: string) => (await belfry.runs.list({ jobId })).items[0]
  return { belfry, settled, runOf }
}

const once = { queue: 'work', retry: { maxAttempts: 1 } }

test('a handler of batches gets many runs in a call, and no more calls at a time than it allows', async () => {
  const t = await setup()
  const sizes: number[] = []
  let [underWay, most] = [0, 0]
  const jobs = await t.belfry.jobs.createMany(Array.from({ length: 50 }, (_, payload) => ({ ...once, payload })))
  const handler = async (runs: Run[]) => {
    sizes.push(runs.length)
    most = Math.max(most, ++underWay)
    await new Promise((resolve) => setImmediate(resolve))
    underWay--
    return runs.map((run) => ({ doubled: (run.payload as number) * 2 }))
  }
  t.belfry.handle('work', handler, { concurrency: 2, batch: { size: 10, waitMs: 20 } })
  await t.settled(jobs)
  expect(sizes.reduce((sum, one) => sum + one, 0)).toBe(50)
  expect(Math.max(...sizes)).toBe(10)
  expect(most).toBeLessThanOrEqual(2)
  expect(await t.runOf(jobs[7]?.jobId ?? '')).toMatchObject({ status: 'succeeded', result: { doubled: 14 } })
})

test('it tells of each run what became of it, and what it throws holds for all', async () => {
  const t = await setup()
  const jobs = await t.belfry.jobs.createMany(
    ['fine', 'bad', 'stop', 'silent'].map((payload) => ({ ...once, payload })),
  )
  const handler = (runs: Run[]) =>
    new Map<Run | string, unknown>(
      runs.flatMap((run): [Run | string, unknown][] => {
        if (run.payload === 'fine') return [[run, 1]]
        if (run.payload === 'bad') return [[run.id, new Error('no')]]
        return run.payload === 'stop' ? [[run, run.cancel('enough')]] : []
      }),
    )
  t.belfry.handle('work', handler, { batch: { size: 4, waitMs: 50 } })
  await t.settled(jobs)
  const runs = await Promise.all(jobs.map(({ jobId }) => t.runOf(jobId)))
  expect(runs).toMatchObject([
    { status: 'succeeded', result: 1 },
    { status: 'failed', error: 'Error: no' },
    { status: 'canceled', error: 'enough' },
    { status: 'succeeded', result: null },
  ])
  const others = await t.belfry.jobs.createMany(Array(3).fill({ ...once, queue: 'throws' }))
  const throwing = (_runs: Run[]): never => {
    throw new Error('all of them')
  }
  t.belfry.handle('throws', throwing, { batch: { size: 3 } })
  await t.settled(others)
  for (const { jobId } of others)
    expect(await t.runOf(jobId)).toMatchObject({ status: 'failed', error: 'Error: all of them' })
})

test('a size that is none is refused before anything begins', async () => {
  const t = await setup()
  expect(() => t.belfry.handle('work', (_runs: Run[]) => {}, { batch: { size: 0 } })).toThrow(/batch\.size/)
})
