import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { Belfry } from '../../src/index.ts'
import { createDatabase, today } from '../database.ts'

test('a pause is answered when this node knows of it, not when it is only written down', async () => {
  const database = await createDatabase({ days: today() })
  onTestFinished(() => database.drop())
  const belfry = await Belfry.start({ database: database.connection, schema: database.schema, drainMs: 0 })
  onTestFinished(() => belfry.stop())
  const seen: unknown[] = []
  await belfry.handle('work', (run) => void seen.push(run.payload))
  const tenant = belfry.tenant({ tenantId: 1, tenant: 'default', actor: 'test' })
  await tenant.jobs.create({ queue: 'work', payload: 0 })
  await expect.poll(() => seen).toEqual([0])

  // No pulse gets through: the node cannot learn anything.
  const holder = new pg.Client(database.connection)
  await holder.connect()
  onTestFinished(() => holder.end())
  await holder.query(`begin; lock table ${database.schema}.nodes`)
  let answered = false
  const pausing = tenant.queues.pause('work').then(() => {
    answered = true
  })
  const isPaused = async () => (await database.query('select from queues where paused_at is not null')).length
  await expect.poll(isPaused, { interval: 5 }).toBe(1)
  // What was answered at the commit would have been answered by the end of this.
  await database.query('select 1')
  expect(answered).toBe(false)

  await holder.query('rollback')
  await pausing
  await tenant.jobs.create({ queue: 'work', payload: 1 })
  await tenant.jobs.create({ queue: 'other', payload: 2 })
  await belfry.handle('other', (run) => void seen.push(run.payload))
  await expect.poll(() => seen).toEqual([0, 2])
  await tenant.queues.resume('work')
  await expect.poll(() => seen).toEqual([0, 2, 1])
})
