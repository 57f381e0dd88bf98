import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { held, START, startKit } from '../behaviour/kit.ts'

/** A tenant that may have two active jobs, and has them. */
async function setupAtQuota() {
  const t = await startKit()
  await t.query(`insert into tenants (id, name, max_active_jobs) values (2, 'acme', 2)`)
  const tenant = await t.kit.tenant('acme')
  const first = await tenant.jobs.create({ queue: 'q', payload: 1 }, { idempotencyKey: 'k1' })
  const second = await tenant.jobs.create({ queue: 'q', delay: '1h', idempotencyKey: 'k2' })
  return { ...t, tenant, first, second }
}

test('a create that is sent again by a tenant at its quota is answered as the first time; a new one is refused', async () => {
  const t = await setupAtQuota()
  const again = await t.tenant.jobs.create({ queue: 'q', payload: 1 }, { idempotencyKey: 'k1' })
  expect(again).toEqual({ ...t.first, deduplicated: true })
  const delayed = await t.tenant.jobs.create({ queue: 'q', delay: '1h', idempotencyKey: 'k2' })
  expect(delayed).toEqual({ ...t.second, deduplicated: true })
  const refused = { code: 'quota_exceeded' }
  await expect(t.tenant.jobs.create({ queue: 'q' })).rejects.toMatchObject(refused)
  await expect(t.tenant.jobs.create({ queue: 'q', idempotencyKey: 'k3' })).rejects.toMatchObject(refused)
  await expect(t.tenant.jobs.create({ queue: 'q', payload: 2, idempotencyKey: 'k1' })).rejects.toMatchObject({
    code: 'idempotency_mismatch',
  })
  // Another tenant's key is not this one's.
  await (await t.kit.tenant('default')).jobs.create({ queue: 'q', idempotencyKey: 'k4' })
  await expect(t.tenant.jobs.create({ queue: 'q', idempotencyKey: 'k4' })).rejects.toMatchObject(refused)
})

test('a key that has expired lets nothing pass the quota', async () => {
  const t = await setupAtQuota()
  t.kit.clock.advance(25 * 3_600_000)
  await t.query('update timers set due_at = $$infinity$$')
  await expect(t.tenant.jobs.create({ queue: 'q', payload: 1, idempotencyKey: 'k1' })).rejects.toMatchObject({
    code: 'quota_exceeded',
  })
})

test('a batch that is sent again at the quota is answered; one that has a new job beside the old ones is refused', async () => {
  const t = await setupAtQuota()
  const old = [
    { queue: 'q', payload: 1, idempotencyKey: 'k1' },
    { queue: 'q', delay: '1h', idempotencyKey: 'k2' },
  ]
  const again = await t.tenant.jobs.createMany(old)
  expect(again.map(({ jobId }) => jobId)).toEqual([t.first.jobId, t.second.jobId])
  for (const fresh of [{ queue: 'q' }, { queue: 'q', idempotencyKey: 'k3' }])
    await expect(t.tenant.jobs.createMany([...old, fresh])).rejects.toMatchObject({ code: 'quota_exceeded' })
})

test('a one-off that is canceled again while its run is stopping leaves one row, and says the same', async () => {
  const { kit, query } = await startKit()
  const { gate, letGo } = held()
  await kit.handle('q', () => gate)
  const { jobId } = await kit.jobs.create({ queue: 'q', name: 'once' })
  const settled = kit.settle()
  await expect.poll(async () => (await kit.runs.get(runIdOf(jobId, START)))?.status).toBe('running')
  const answers = []
  for (let i = 0; i < 3; i++) answers.push(await kit.jobs.cancel(jobId))
  answers.push(await kit.jobs.cancel(jobId, { running: 'finish' }))
  expect(answers).toEqual(Array.from({ length: 4 }, () => ({ status: 'canceling' })))
  expect(await query(`select from job_changes where action = 'cancel' and subject_id = $1`, [jobId])).toHaveLength(1)
  letGo()
  await settled
})

test('to cancel a one-off and let its run finish is one change, to have the run stopped after all another', async () => {
  const { kit, query } = await startKit()
  const { gate, letGo } = held()
  await kit.handle('q', () => gate)
  const { jobId } = await kit.jobs.create({ queue: 'q', name: 'once' })
  const settled = kit.settle()
  await expect.poll(async () => (await kit.runs.get(runIdOf(jobId, START)))?.status).toBe('running')
  for (const running of ['finish', 'finish', 'cancel', 'cancel'] as const) await kit.jobs.cancel(jobId, { running })
  const rows = await query<{ after: unknown }>(
    `select after from job_changes where action = 'cancel' and subject_id = $1 order by written_at`,
    [jobId],
  )
  expect(rows.map(({ after }) => after)).toEqual([
    { status: 'canceled', running: 'finish' },
    { status: 'canceled', running: 'cancel' },
  ])
  letGo()
  await settled
})
