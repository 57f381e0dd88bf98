import { expect, test } from 'vitest'
import { record, SECOND } from '../behaviour/kit.ts'
import { startTenants } from './setup.ts'

async function setup(letters: number) {
  const t = await startTenants()
  let works = false
  const seen = await record(t.kit, 'moody', () => (works ? 'fine' : Promise.reject(new Error('broken'))))
  for (let n = 0; n < letters; n++) {
    await t.own.jobs.create({ queue: 'moody', payload: n, retry: { maxAttempts: 1 } })
    await t.kit.settle()
    t.kit.clock.advance(1)
  }
  works = true
  seen.length = 0
  return { ...t, seen }
}

test('redriven at a rate, runs start one after the other, the oldest first', async () => {
  const t = await setup(6)
  const began = t.kit.now().getTime()
  expect(await t.own.deadLetters.redrive({ filter: {}, rate: 2 })).toMatchObject({ count: 6 })
  await t.kit.pass(10 * SECOND)
  expect(t.seen.map(({ payload, at, attempt }) => [payload, at.getTime() - began, attempt])).toEqual(
    [0, 500, 1_000, 1_500, 2_000, 2_500].map((ms, n) => [n, ms, 2]),
  )
  expect((await t.own.deadLetters.list()).items).toEqual([])
})

test('a rate below one run per second, and a redrive by ids', async () => {
  const t = await setup(3)
  const runIds = (await t.own.deadLetters.list()).items.map(({ runId }) => runId)
  const began = t.kit.now().getTime()
  await t.own.deadLetters.redrive({ runIds, rate: 0.1 })
  const waiting = await t.own.runs.list({ status: 'waiting' })
  expect(waiting.items).toHaveLength(3)
  await t.kit.pass(30 * SECOND)
  expect(t.seen.map(({ at }) => at.getTime() - began)).toEqual([0, 10 * SECOND, 20 * SECOND])
})

test('a dry run with a rate opens nothing, and a rate that is none is refused', async () => {
  const t = await setup(2)
  expect(await t.own.deadLetters.redrive({ filter: {}, rate: 1, dryRun: true })).toMatchObject({ count: 2 })
  for (const rate of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1_001, '1' as never])
    await expect(t.own.deadLetters.redrive({ filter: {}, rate })).rejects.toMatchObject({
      code: 'invalid_argument',
      complaints: [{ path: 'rate' }],
    })
  expect((await t.own.deadLetters.list()).items).toHaveLength(2)
})

test("another tenant's letters are not touched, and the change says who did it and when it is due", async () => {
  const t = await setup(1)
  const [letter] = (await t.own.deadLetters.list()).items
  expect(await t.other.deadLetters.redrive({ runIds: [letter?.runId ?? ''], rate: 1 })).toEqual({
    count: 0,
    runIds: [],
  })
  await t.own.deadLetters.redrive({ filter: {}, rate: 1 })
  const changes = await t.query<{ actor: string; after: unknown }>(
    `select actor, after from job_changes where action = 'retry'`,
  )
  expect(changes).toMatchObject([{ actor: 'bk_own', after: { dueAt: expect.any(String) } }])
})

test('runs of a job that may not overlap are opened again together, and performed one after the other', async () => {
  const t = await startTenants()
  let atOnce = 0
  let most = 0
  const seen = await record(t.kit, 'moody', async () => {
    most = Math.max(most, ++atOnce)
    await new Promise((resolve) => setImmediate(resolve))
    atOnce--
    throw new Error('broken')
  })
  const { jobId } = await t.own.jobs.create({ queue: 'moody', cron: '0 0 1 1 *', retry: { maxAttempts: 1 } })
  await t.kit.settle()
  for (let n = 0; n < 3; n++) {
    await t.own.jobs.trigger(jobId)
    await t.kit.settle()
  }
  const letters = (await t.own.deadLetters.list({ jobId })).items.length
  const [before, begun] = [seen.length, t.kit.clock.now()]
  expect(await t.own.deadLetters.redrive({ filter: { jobId }, rate: 1 })).toMatchObject({ count: letters })
  expect((await t.own.runs.list({ jobId, status: 'blocked' })).items).toHaveLength(letters - 1)
  await t.kit.pass(10_000)
  expect([seen.length - before, most]).toEqual([letters, 1])
  // Never more of them than have come due at the rate.
  for (const [n, { at }] of seen.slice(before).entries()) expect(Number(at) - begun).toBeGreaterThanOrEqual(n * 1_000)
})
