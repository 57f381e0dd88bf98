import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { startTestKit, type TestKitOptions } from './index.ts'

const START = new Date('2026-03-02T08:00:00Z')
const MINUTE = 60_000
const HOUR = 60 * MINUTE

async function setup(options: Partial<TestKitOptions> = {}) {
  const { schema, drop } = await createDatabase({ days: { around: START.getTime(), ahead: 2 } })
  onTestFinished(drop)
  return setupIn({ schema, seed: 1, ...options })
}

async function setupIn(options: Partial<TestKitOptions>) {
  const kit = await startTestKit({ database: inject('postgres'), start: START, ...options })
  onTestFinished(() => kit.stop())
  return kit
}

test('nothing happens until a step is made, and each step does its own part', async () => {
  const kit = await setup()
  const seen: Date[] = []
  const { jobId } = await kit.jobs.create({ queue: 'digest', cron: '0 9 * * 1-5', payload: 1 })
  kit.clock.advance(HOUR)
  expect(await kit.promote()).toBe(0)
  await kit.pulse()
  await kit.readTimers()
  expect(await kit.promote()).toBe(1)
  await kit.handle('digest', (run) => void seen.push(run.nominalAt))
  expect(seen).toEqual([])
  await kit.pulse()
  expect(await kit.claim('digest')).toBe(1)
  expect(seen).toEqual([new Date('2026-03-02T09:00:00Z')])
  expect((await kit.jobs.get(jobId))?.nextRunAt).toEqual(new Date('2026-03-03T09:00:00Z'))
})

test('passing time stops at everything that is due on the way', async () => {
  const kit = await setup()
  const seen: string[] = []
  await kit.handle('digest', (run) => void seen.push(`${run.nominalAt.toISOString()} at ${kit.now().toISOString()}`))
  await kit.jobs.create({ queue: 'digest', cron: '0 9 * * 1-5', payload: 1 })
  await kit.pass(5 * 24 * HOUR)
  expect(seen).toEqual(
    ['02', '03', '04', '05', '06'].map((day) => `2026-03-${day}T09:00:00.000Z at 2026-03-${day}T09:00:00.000Z`),
  )
  expect(kit.now()).toEqual(new Date('2026-03-07T08:00:00Z'))
})

test('months may pass, though each day needs its own place in history', async () => {
  const kit = await setup()
  let count = 0
  await kit.handle('digest', () => void count++)
  await kit.jobs.create({ queue: 'digest', cron: '0 0 1 * *', payload: 1 })
  await kit.pass(100 * 24 * HOUR)
  expect(count).toBe(3)
})

test('a mail that bounces twice is sent the third time', async () => {
  const kit = await setup()
  let attempts = 0
  await kit.handle('mail', () => {
    if (++attempts < 3) throw new Error('bounced')
  })
  const retry = { backoff: { type: 'fixed', initial: '1m' } } as const
  const { jobId } = await kit.jobs.create({ queue: 'mail', payload: {}, retry })
  await kit.pass(10 * MINUTE)
  expect((await kit.jobs.get(jobId))?.status).toBe('succeeded')
  expect(attempts).toBe(3)
})

test('more work than there are slots is all done before it settles', async () => {
  const kit = await setup()
  let most = 0
  let active = 0
  let done = 0
  const perform = async () => {
    most = Math.max(most, ++active)
    await new Promise((resolve) => setImmediate(resolve))
    active--
    done++
  }
  await kit.handle('mail', perform, { concurrency: 3 })
  await kit.jobs.createMany(Array(20).fill({ queue: 'mail', payload: 1 }))
  await kit.jobs.createMany(Array(20).fill({ queue: 'mail', payload: 1, delay: '1m' }))
  await kit.settle()
  expect(done).toBe(20)
  await kit.pass(MINUTE)
  expect([most, done]).toEqual([3, 40])
})

test('the same seed gives the same backoffs', async () => {
  const times = async (seed: number) => {
    const kit = await setup({ seed })
    const seen: number[] = []
    await kit.handle('mail', () => {
      seen.push(kit.clock.now())
      throw new Error('bounced')
    })
    await kit.jobs.create({ queue: 'mail', payload: 1 })
    await kit.pass(HOUR)
    return seen
  }
  const first = await times(5)
  expect(first).toHaveLength(5)
  expect(await times(5)).toEqual(first)
  expect(await times(6)).not.toEqual(first)
})

test('two kits on one schema share the work, and the schema stays with whoever made it', async () => {
  const first = await setupIn({})
  const second = await setupIn({ schema: first.schema })
  const seen: string[] = []
  await first.handle('mail', (run) => void seen.push(run.id))
  await second.jobs.createMany(Array(5).fill({ queue: 'mail', payload: 1 }))
  await first.settle()
  expect(seen).toHaveLength(5)
  await second.stop()
  expect((await first.runs.list()).items).toHaveLength(5)
})

test('a queue has one handler, and a queue without one cannot be claimed from', async () => {
  const kit = await setup()
  await kit.handle('mail', () => {})
  await expect(kit.handle('mail', () => {})).rejects.toMatchObject({ code: 'already_handled' })
  await expect(kit.claim('post')).rejects.toMatchObject({ code: 'invalid_argument' })
})
