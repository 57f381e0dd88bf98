import { expect, onTestFinished, test } from 'vitest'
import { Belfry } from '../../src/index.ts'
import { createDatabase, today } from '../database.ts'

test('a job created by SQL under a name that is taken is kept, paused, with the reason', async () => {
  const database = await createDatabase({ days: today() })
  onTestFinished(() => database.drop())
  const belfry = await Belfry.start({ database: database.connection, schema: database.schema })
  onTestFinished(() => belfry.stop())
  await belfry.jobs.create({ name: 'digest', queue: 'q', every: '1h' })
  const definition = JSON.stringify({ name: 'digest', queue: 'q', every: '2h' })
  const [made] = await database.query<{ id: string }>(`select create_job($1::jsonb) as id`, [definition])
  const job = () => database.query('select status, pause_reason from jobs where id = $1', [made?.id])
  await expect.poll(job).toEqual([{ status: 1, pause_reason: expect.stringContaining('digest') }])
  expect(await database.query('select due_at from timers where job_id = $1', [made?.id])).toEqual([
    { due_at: Number.POSITIVE_INFINITY },
  ])
})
