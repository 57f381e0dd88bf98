import { expect, test } from 'vitest'
import { record, SECOND, START, startKit } from './kit.ts'

const many = (count: number, rateLimit: object) =>
  Array.from({ length: count }, (_, i) => ({ queue: 'mail', payload: i, rateLimit }) as never)

test('no more start than the burst and what the rate gives, and all start in time and in order', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'mail')
  await kit.jobs.createMany(many(25, { key: 'acme', limit: 10, period: '1s', burst: 5 }))
  await kit.pass(10 * SECOND)
  const at = seen.map((run) => run.at.getTime() - START)
  expect(at.slice(0, 5)).toEqual([0, 0, 0, 0, 0])
  expect(at.slice(5)).toEqual(Array.from({ length: 20 }, (_, i) => (i + 1) * 100))
})

test('what is over the rate of its key is in nobody’s way', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'mail')
  await kit.jobs.createMany(many(50, { key: 'slow', limit: 1, period: '1h' }))
  await kit.jobs.createMany(many(20, { key: 'quick', limit: 1_000, period: '1s' }))
  await kit.jobs.create({ queue: 'mail', payload: 'plain' })
  await kit.settle()
  expect(seen).toHaveLength(22)
})

test('a run that costs more waits for as much', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'mail')
  await kit.jobs.createMany(many(3, { key: 'acme', limit: 10, period: '1s', burst: 10, cost: 10 }))
  await kit.pass(5 * SECOND)
  expect(seen.map((run) => run.at.getTime() - START)).toEqual([0, 1_000, 2_000])
})

test('a rate that is raised counts at once for all that wait, and so does one that is lowered', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'mail')
  const rate = (limit: number) => ({ key: 'acme', limit, period: '1m', burst: 1 })
  const { jobId } = await kit.jobs.create({ queue: 'mail', payload: 'x', cron: '0 0 1 6 *', rateLimit: rate(1) })
  await kit.jobs.createMany(many(10, rate(1)))
  await kit.pass(30 * SECOND)
  expect(seen).toHaveLength(1)
  await kit.jobs.update(jobId, { rateLimit: rate(60) })
  await kit.pass(5 * SECOND)
  expect(seen.length).toBeGreaterThanOrEqual(5)
  await kit.jobs.update(jobId, { rateLimit: rate(1) })
  const before = seen.length
  await kit.pass(50 * SECOND)
  expect(seen.length - before).toBeLessThanOrEqual(2)
})

test('a lowered rate is no further ahead than its own burst: its runs go on at the new pace', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'mail')
  await kit.jobs.createMany(many(500, { key: 'acme', limit: 1_000, period: '1m' }))
  await kit.settle()
  expect(seen).toHaveLength(500)
  await kit.jobs.createMany(many(10, { key: 'acme', limit: 1, period: '1s', burst: 1 }))
  await kit.pass(5 * SECOND)
  expect(seen.length - 500).toBeGreaterThanOrEqual(4)
  expect(seen.length - 500).toBeLessThanOrEqual(6)
})

test('a rate may be changed from any to any other', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'mail')
  const rate = { key: 'acme', period: '366d' }
  await kit.jobs.createMany(many(1, { ...rate, limit: 1_000_000, cost: 1_000_000 }))
  await kit.settle()
  await kit.jobs.createMany(many(1, { ...rate, limit: 1 }))
  await kit.settle()
  await kit.jobs.createMany(many(1, { key: 'acme', period: '1ms', limit: 1_000_000 }))
  await kit.pass(SECOND)
  expect(seen).toHaveLength(3)
})

test('both limits of a key hold at the same time', async () => {
  const { kit } = await startKit()
  const begun: number[] = []
  const ends: (() => void)[] = []
  await kit.handle('mail', () => {
    begun.push(kit.now().getTime() - START)
    return new Promise<void>((resolve) => ends.push(resolve))
  })
  const jobs = many(6, { limit: 10, period: '1s', burst: 2, key: 'acme' }).map((job: object) => ({
    ...job,
    concurrency: { key: 'acme', limit: 3 },
  }))
  await kit.jobs.createMany(jobs as never)
  for (let i = 0; i < 10; i++) {
    await kit.settle({ running: 'leave' })
    kit.clock.advance(100)
  }
  expect(begun).toEqual([0, 0, 100])
  for (const end of ends.splice(0)) end()
  await kit.settle({ running: 'leave' })
  expect(begun).toHaveLength(5)
})
