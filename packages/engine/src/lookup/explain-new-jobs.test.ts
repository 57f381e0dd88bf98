import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { startTestKit } from '../testing/index.ts'

const START = Date.UTC(2026, 0, 5, 8, 0, 20)

async function setup() {
  const database = await createDatabase({ days: { around: START, ahead: 2 } })
  onTestFinished(database.drop)
  const kit = await startTestKit({ database: inject('postgres'), schema: database.schema, start: START, seed: 1 })
  onTestFinished(() => kit.stop())
  const { jobs } = await kit.tenant('default', 'bk_reader')
  /** Creates a job while time goes on, as it does between what a caller asks for and the id of the job. */
  const createSlowly = async (job: Parameters<typeof jobs.create>[0]) => {
    let isOver = false
    const creating = jobs.create(job).finally(() => {
      isOver = true
    })
    while (!isOver) {
      kit.clock.advance(1)
      await new Promise((resolve) => setImmediate(resolve))
    }
    return creating
  }
  return { kit, jobs, createSlowly }
}

test('the first time of an interval waits for its jitter, though the job got its id a moment after it', async () => {
  const t = await setup()
  const { jobId } = await t.createSlowly({ queue: 'new', payload: 1, every: '10m', jitter: '5m' })
  const { nextRunAt, createdAt } = (await t.kit.jobs.get(jobId)) ?? {}
  expect(nextRunAt?.getTime()).toBeLessThan(createdAt?.getTime() ?? 0)
  for (const found of [await t.jobs.explain(jobId), await t.jobs.explain(jobId, nextRunAt?.toISOString() ?? '')])
    expect(found).toMatchObject({ verdict: 'waiting', reason: 'jitter', nominalAt: nextRunAt })
  const day = { from: new Date(START - 60_000), to: new Date(START + 60_000) }
  expect((await t.jobs.explainRange(jobId, day)).items).toMatchObject([{ verdict: 'waiting', nominalAt: nextRunAt }])
})

test('a job that was made in this minute, and has no time in it, is not said to be missing', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ queue: 'mail', payload: 1, cron: '0 * * * *' })
  t.kit.clock.advance(5_000)
  expect(await t.jobs.explain(jobId)).toMatchObject({
    ...{ verdict: 'never', reason: 'expression', nominalAt: null },
    nearest: { before: null, after: new Date(Date.UTC(2026, 0, 5, 9)) },
  })
})
