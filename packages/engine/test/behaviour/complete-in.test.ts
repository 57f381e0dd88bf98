import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { HOUR, record, START, startKit } from './kit.ts'

async function setup() {
  const t = await startKit()
  await t.query('create table bookings (run text primary key, attempt integer)')
  /** Books in a transaction of the handler's own, which also completes the run, and ends as `ending` says. */
  const book = async (run: Parameters<Parameters<typeof t.kit.handle>[1]>[0], ending: 'commit' | 'rollback') => {
    const client = await t.pool.connect()
    try {
      await client.query('begin')
      await client.query('insert into bookings values ($1, $2)', [run.id, run.attempt])
      await run.completeIn(client, { booked: run.attempt })
      await client.query(ending)
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  }
  return { ...t, book }
}

test("a run completed in its handler's transaction commits with it", async () => {
  const { kit, query, book } = await setup()
  const seen = await record(kit, 'ledger', (run) => book(run, 'commit'))
  const { jobId } = await kit.jobs.create({ queue: 'ledger', payload: 1 })
  await kit.pass(HOUR)
  const runId = runIdOf(jobId, START)
  expect(seen).toHaveLength(1)
  expect(await query('select * from bookings')).toEqual([{ run: runId, attempt: 1 }])
  expect(await kit.runs.get(runId)).toMatchObject({
    status: 'succeeded',
    result: { booked: 1 },
    attempts: [{ number: 1, status: 'succeeded', counted: true }],
  })
})

test('a handler that rolls its transaction back after completing the run has failed', async () => {
  const { kit, query, book } = await setup()
  const seen = await record(kit, 'ledger', (run) => book(run, run.attempt === 1 ? 'rollback' : 'commit'))
  const { jobId } = await kit.jobs.create({ queue: 'ledger', payload: 1 })
  await kit.pass(HOUR)
  const runId = runIdOf(jobId, START)
  expect(seen.map((run) => [run.attempt, run.failures])).toEqual([
    [1, 0],
    [2, 1],
  ])
  expect(await query('select * from bookings')).toEqual([{ run: runId, attempt: 2 }])
  expect((await kit.runs.get(runId))?.attempts).toMatchObject([
    { number: 1, status: 'failed', error: 'the transaction was not committed' },
    { number: 2, status: 'succeeded' },
  ])
})

test('a handler that throws after completing the run and rolling back has failed with what it threw', async () => {
  const { kit, book } = await setup()
  await record(kit, 'ledger', async (run) => {
    await book(run, run.attempt === 1 ? 'rollback' : 'commit')
    if (run.attempt === 1) throw new Error('overdrawn')
  })
  const { jobId } = await kit.jobs.create({ queue: 'ledger', payload: 1 })
  await kit.pass(HOUR)
  expect((await kit.runs.get(runIdOf(jobId, START)))?.attempts[0]).toMatchObject({ error: 'Error: overdrawn' })
})

test('a handler whose lease was lost cannot complete the run, and its own writes are rolled back', async () => {
  const { kit, query, fabricate, book } = await setup()
  let code: unknown
  await record(kit, 'ledger', async (run) => {
    await fabricate('update runs set attempt = attempt + 1, holder = 1')
    code = await book(run, 'commit').catch((error: { code: string }) => error.code)
  })
  await kit.jobs.create({ queue: 'ledger', payload: 1 })
  await kit.settle()
  expect(code).toBe('lease_lost')
  expect(await query('select from bookings')).toEqual([])
  expect(await query('select from attempts')).toEqual([])
})

test('the checkpoint goes with a run that its handler completes', async () => {
  const { kit, query, book } = await setup()
  await record(kit, 'ledger', async (run) => {
    await run.checkpoint({ half: true })
    await book(run, 'commit')
  })
  await kit.jobs.create({ queue: 'ledger', payload: 1 })
  await kit.settle()
  expect(await query('select from checkpoints')).toEqual([])
  expect(await query('select from attempts where final')).toHaveLength(1)
})
