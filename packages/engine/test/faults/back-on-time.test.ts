import { expect, onTestFinished, test } from 'vitest'
import { Belfry, type JobInput } from '../../src/index.ts'
import { OVERLAP } from '../../src/job/states.ts'
import { auditRecurring } from '../chaos/audit.ts'
import { createDatabase, today } from '../database.ts'

async function setup() {
  const { connection, schema, query, fabricate, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  const start = async () => {
    const node = await Belfry.start({ database: connection, schema })
    onTestFinished(() => node.stop())
    return node
  }
  const node = await start()
  /** Makes jobs of every second, and stops the node as if it had been away for so long. */
  const away = async (jobs: JobInput[], seconds: number) => {
    await node.stop()
    const other = await Belfry.start({ database: connection, schema, roles: ['api'] })
    const startAt = new Date(Date.now() - 3_600_000)
    const created = await other.jobs.createMany(jobs.map((job) => ({ ...job, startAt })))
    await other.stop()
    const back = `interval '${seconds} s'`
    await fabricate(`update timers set due_at = due_at - ${back}, nominal_at = nominal_at - ${back}`)
    return created.map(({ jobId }) => jobId)
  }
  /** How many seconds the job that is latest is behind. */
  const behind = async () => {
    const [row] = await query<{ s: number }>(
      'select extract(epoch from now() - min(nominal_at))::float8 as s from timers',
    )
    return row?.s ?? 0
  }
  return { schema, query, start, away, behind }
}

test('after an outage of 20 s jobs of every second are on time again within seconds, and no nominal time is missing', async () => {
  const t = await setup()
  const policies = Object.keys(OVERLAP) as (keyof typeof OVERLAP)[]
  const jobs = policies.flatMap((overlap) => Array<JobInput>(8).fill({ queue: 'work', every: '1s', overlap }))
  const jobIds = await t.away(jobs, 20)
  const node = await t.start()
  node.handle('work', () => {}, { concurrency: 50 })
  await expect.poll(t.behind, { timeout: 6_000 }).toBeLessThan(1)
  for (const jobId of jobIds) await node.jobs.cancel(jobId, { running: 'finish' })
  await expect.poll(() => t.query('select from runs')).toEqual([])
  const wrong = await Promise.all(jobIds.map((jobId) => auditRecurring(t.query, t.schema, jobId, 1_000)))
  expect(wrong.flat()).toEqual([])
})

test('what is made up for comes in portions without a pause between them', async () => {
  const t = await setup()
  const catchUp = { policy: 'all', window: '1h', max: 2_000 } as const
  const [jobId = ''] = await t.away([{ queue: 'work', every: '1s', overlap: 'allow', catchUp }], 1_500)
  const node = await t.start()
  node.handle('work', () => {}, { concurrency: 50 })
  // Fifteen portions: with a pulse between them it would take as many seconds.
  await expect.poll(t.behind, { timeout: 8_000 }).toBeLessThan(1)
  await node.jobs.cancel(jobId, { running: 'finish' })
  await expect.poll(() => t.query('select from runs')).toEqual([])
  expect(await auditRecurring(t.query, t.schema, jobId, 1_000)).toEqual([])
  const [{ runs } = { runs: 0 }] = await t.query<{ runs: number }>(
    'select count(*)::int as runs from attempts where final',
  )
  expect(runs).toBeGreaterThanOrEqual(1_500)
})
