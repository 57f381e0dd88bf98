import { expect, test } from 'vitest'
import { awaitParents } from '../../src/dependencies/await-parents.sql.ts'
import { OUTCOME } from '../../src/job/states.ts'
import { unpackHolders } from '../../src/leases/receipts.sql.ts'
import { LEASE_MS, MANY, promoted } from './packed.ts'
import { MINUTE, START, setup } from './setup.ts'

const EVERY_MINUTE = { every: 'PT1M', startAt: new Date(START + MINUTE), timeout: '1h' }

test('of many recurring jobs the next time is skipped while the last run stands in a receipt, and comes when it has ended', async () => {
  const t = await setup()
  const node = await t.startNode()
  const { runs, of, endAll, fire } = await promoted(node, EVERY_MINUTE)
  expect(runs.size).toBe(MANY)
  expect([(await t.query('select from runs')).length, (await t.query('select from receipts')).length]).toEqual([0, 1])
  expect(await node.runs.get(of(0).run.id)).toMatchObject({ status: 'running', cause: 'schedule' })
  const first = new Map([...runs].map(([jobId, { run }]) => [jobId, run.id]))
  for (let i = 0; i < 40; i++) of(i).end()
  await node.engine.handlers.settled()
  await fire()
  // 40 had ended and run again, the others are still at work.
  const again = [...runs.values()].filter(({ run }) => first.get(run.jobId) !== run.id)
  expect(again).toHaveLength(40)
  expect(await t.query('select count(*)::int as n from skips')).toEqual([{ n: MANY - 40 }])
  await endAll()
  expect(await t.query('select count(*)::int as n from attempts where final')).toEqual([{ n: MANY + 40 }])
  await fire()
  expect(await t.query('select count(*)::int as n from skips')).toEqual([{ n: MANY - 40 }])
  await endAll()
  expect(await t.query('select count(*)::int as n from attempts where final')).toEqual([{ n: 2 * MANY + 40 }])
})

test('the overlap policy holds when the receipt was taken apart, and for triggers', async () => {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  const { of, endAll, fire } = await promoted(node, EVERY_MINUTE)
  const { run } = of(3)
  await expect(other.jobs.trigger(run.jobId)).rejects.toMatchObject({ code: 'overlap' })
  expect(await other.runs.cancel(of(50).run.id)).toEqual({ status: 'canceling' })
  expect(await t.query('select from receipts')).toEqual([])
  await expect(other.jobs.trigger(run.jobId)).rejects.toMatchObject({ code: 'overlap' })
  await fire()
  expect(await t.query('select count(*)::int as n from skips')).toEqual([{ n: MANY }])
  await endAll()
  expect((await other.jobs.trigger(run.jobId)).runId).not.toBe(run.id)
  expect(await t.query('select count(*)::int as n from attempts')).toEqual([{ n: MANY }])
})

test('a run whose receipt somebody takes apart while somebody else begins to follow its job is waited for', async () => {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  const { of } = await promoted(node, EVERY_MINUTE)
  const { jobId, lease } = of(3).run
  await node.db.transaction((tx) =>
    awaitParents(
      {
        execute: (statement, values) => tx.execute(statement, values),
        query: async (statement, values) => {
          if (statement.name === 'receipts_of_jobs') await unpackHolders(other.db, [lease.holder])
          return tx.query(statement, values)
        },
      },
      { oneOffs: [], recurring: [jobId] },
    ),
  )
  expect(await t.query('select has_dependents from runs where job_id = $1', [jobId])).toEqual([
    { has_dependents: true },
  ])
})

test('a recurring job can be canceled while its run stands in a receipt', async () => {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  const { of, endAll } = await promoted(node, EVERY_MINUTE)
  const { run } = of(3)
  expect(await other.jobs.cancel(run.jobId)).toEqual({ status: 'canceled' })
  node.clock.advance(LEASE_MS / 2)
  await node.engine.keeper.runOnce()
  expect(run.signal.reason).toBe('canceled')
  await endAll()
  expect(await t.query('select outcome from attempts where job_id = $1', [run.jobId])).toEqual([
    { outcome: OUTCOME.canceled },
  ])
})

test('delayed one-offs that are born into a receipt end once, or come back when their node dies', async () => {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  const { runs, of } = await promoted(node, { delay: '1m' })
  expect(runs.size).toBe(MANY)
  expect([(await t.query('select from runs')).length, (await t.query('select from receipts')).length]).toEqual([0, 1])
  for (let i = 0; i < 30; i++) of(i).end()
  await node.engine.handlers.settled()
  other.clock.advance(MINUTE + LEASE_MS)
  expect(await other.reap()).toBe(MANY - 30)
  expect(await t.query('select distinct one_off, attempt, failures from runs')).toEqual([
    { one_off: true, attempt: 1, failures: 1 },
  ])
})
