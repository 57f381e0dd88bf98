import { expect, inject, onTestFinished, test } from 'vitest'
import { startTestKit } from '../../src/testing/index.ts'
import { createDatabase } from '../database.ts'

const START = Date.UTC(2026, 0, 5, 8)

test('a job that is changed while it is paused stays paused since then, and its next pause begins anew', async () => {
  const database = await createDatabase()
  onTestFinished(database.drop)
  const kit = await startTestKit({ database: inject('postgres'), schema: database.schema, start: START, seed: 1 })
  onTestFinished(() => kit.stop())
  const { jobs } = await kit.tenant('default', 'bk_test')
  const recurring = await jobs.create({ queue: 'mail', cron: '0 9 * * *', payload: 1 })
  const once = await jobs.create({ queue: 'mail', runAt: '2026-03-01T09:00:00Z', payload: 1 })
  for (const { jobId } of [recurring, once]) {
    const pausedAt = new Date(kit.clock.now())
    await jobs.pause(jobId, { reason: 'month end' })
    kit.clock.advance(60_000)
    await jobs.update(jobId, { payload: 2 })
    expect(await jobs.get(jobId)).toMatchObject({ status: 'paused', pausedAt, pausedReason: 'month end', version: 2 })
    await jobs.resume(jobId)
    expect(await jobs.get(jobId)).toMatchObject({ status: 'active', pausedAt: null })
    kit.clock.advance(60_000)
    await jobs.pause(jobId)
    expect(await jobs.get(jobId)).toMatchObject({ pausedAt: new Date(kit.clock.now()) })
  }
})
