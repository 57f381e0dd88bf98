import { expect, test } from 'vitest'
import { held, startKit } from '../behaviour/kit.ts'
import { setup as setupNodes } from './setup.ts'

const MANY = 150

/** A tenant whose runs are all being performed, in one large claim. */
async function setup() {
  const t = await startKit()
  await t.query(`insert into tenants (id, name, max_active_jobs) values (2, 'acme', ${MANY})`)
  const tenant = await t.kit.tenant('acme')
  const { gate, letGo } = held()
  await t.kit.handle('q', () => gate, { tenant: 'acme', concurrency: MANY })
  await tenant.jobs.createMany(Array.from({ length: MANY }, () => ({ queue: 'q' })))
  const settled = t.kit.settle()
  await expect.poll(async () => (await t.query('select from runs where state = 0')).length).toBe(0)
  return { ...t, tenant, letGo, settled }
}

test('a tenant whose runs are being performed is at its quota until they have ended', async () => {
  const t = await setup()
  // Counted anew.
  t.kit.clock.advance(2_000)
  await expect(t.tenant.jobs.create({ queue: 'q' })).rejects.toMatchObject({ code: 'quota_exceeded' })
  t.letGo()
  await t.settled
  t.kit.clock.advance(2_000)
  await t.tenant.jobs.create({ queue: 'q' })
})

test('a tenant whose runs are being performed is not deleted', async () => {
  const t = await setupNodes()
  const node = await t.startNode()
  const { tenants } = node.engine.admin
  const { id } = await tenants.create({ name: 'acme' }, 'root')
  await node.jobs.createMany(Array.from({ length: MANY }, () => ({ tenant: 'acme', queue: 'q' })))
  const { gate, letGo } = held()
  const queueId = await node.engine.registry.queueId(id, 'q')
  node.engine.handle(queueId, () => gate, MANY)
  node.engine.handlers.hint(queueId, 5, Number.MIN_SAFE_INTEGER)
  await node.engine.handlers.claimer(queueId)?.runOnce()
  expect(await t.query('select from runs where state = 0')).toEqual([])
  await expect(tenants.delete(id, 'root')).rejects.toMatchObject({ code: 'not_empty' })
  letGo()
  await node.engine.handlers.settled()
  await expect
    .poll(() =>
      tenants.delete(id, 'root').then(
        () => 'deleted',
        (error) => error.code,
      ),
    )
    .toBe('deleted')
})
