import { expect, test, vi } from 'vitest'
import { newJobId, shardOfJob } from '../../src/job/ids.ts'
import { CAUSE, RUN_STATE } from '../../src/job/states.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { allStatements } from '../../src/store/statement.ts'
import { MINUTE, START, setup } from './setup.ts'

const MINUTELY = { cron: '* * * * *', startAt: new Date(START - 20 * MINUTE), queue: 'reports', payload: 1 } as const
const RANGE = { from: new Date(START - 20 * MINUTE), to: new Date(START) }

/** Backfills of another tenant, of older jobs in the same shard, with a run each that waits for long. */
async function crowd(t: Awaited<ReturnType<typeof setup>>, jobId: string, count: number) {
  const shard = shardOfJob(jobId)
  const random = seededRandom(3)
  const jobIds = Array.from({ length: count }, () => newJobId(shard, START - MINUTE, random))
  const [past, later] = [new Date(START - MINUTE), new Date(START + 900 * 1_440 * MINUTE)]
  await t.query(
    `insert into backfills (shard, id, job_id, tenant_id, from_nominal, to_nominal, position_at, schedule_id, concurrency, total, created, created_at,
       created_by, status) select $1, n, n, 2, $3, $4, $4, 1, 1, 1, 1, $3, 'them', 2 from unnest($2::uuid[]) n`,
    [shard, jobIds, past, new Date(START)],
  )
  await t.query(
    `insert into backfill_runs (shard, job_id, backfill_id, tenant_id, nominal_at) select $1, n, n, 2, $3 from unnest($2::uuid[]) n`,
    [shard, jobIds, past],
  )
  await t.fabricate(
    `insert into runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause,
       delivery, one_off, cancel_requested, has_dependents)
     select $3, $4, 0, n, 2, 0, 1, 1, 0, 1000, $1, ${RUN_STATE.waiting}, 5, ${CAUSE.backfill}, 0, false, false, false from unnest($2::uuid[]) n`,
    [shard, jobIds, past, later],
  )
}

test('however many backfills another tenant has, each gets on: when a run of it ends, and also if nobody tells', async () => {
  const t = await setup()
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create({ ...MINUTELY, overlap: 'allow' })
  await a.backfills.create(jobId, { ...RANGE, concurrency: 2 })
  await crowd(t, jobId, 1_500)
  const made = async () => (await t.query('select from runs where job_id = $1', [jobId])).length
  const step = async (node: typeof a) => {
    await node.engine.pulse.runOnce()
    node.engine.backfiller.own([0, 1])
    await node.engine.backfiller.runOnce()
  }
  // Nobody told this one.
  for (let i = 0; i < 10 && (await made()) === 0; i++) await step(b)
  expect(await made()).toBe(2)
  // What ends at a node that owns nothing is told by it to the owner, whatever its pulses saw.
  a.engine.wakeups.take()
  await a.engine.pulse.runOnce()
  a.engine.backfiller.own([])
  a.engine.backfiller.ended(jobId)
  expect(a.engine.wakeups.take()).toContain(jobId)
  // One that is new and knows nothing hears of it when somebody finds what it left behind.
  const c = await t.startNode()
  c.engine.backfiller.ended(jobId)
  expect(c.engine.wakeups.take()).toBeNull()
  await t.fabricate('delete from runs where job_id = $1', [jobId])
  b.engine.wakeups.take()
  for (let i = 0; i < 10 && (await made()) === 0; i++) await step(b)
  c.engine.wakeups.receive(b.engine.wakeups.take() ?? '')
  c.engine.backfiller.ended(jobId)
  expect(c.engine.wakeups.take()).toContain(jobId)
})

test('of a walk that does not come to its end in one step the next begins where it stopped, and it goes round', async () => {
  const t = await setup()
  const a = await t.startNode()
  const { jobId } = await a.jobs.create({ ...MINUTELY, overlap: 'allow' })
  await a.backfills.create(jobId, RANGE)
  await crowd(t, jobId, 700)
  const b = await t.startNode()
  // Again and again: what it made goes without a word, and is found once more.
  for (let round = 0; round < 3; round++) {
    let steps = 0
    for (; steps < 10 && (await t.query('select from runs where job_id = $1', [jobId])).length === 0; steps++) {
      b.engine.backfiller.saw({ hasBackfills: true })
      await b.engine.backfiller.runOnce()
    }
    expect(steps).toBeLessThanOrEqual(4)
    await t.fabricate('delete from runs where job_id = $1', [jobId])
  }
})

test('while no backfill is open, the backfiller sends nothing', async () => {
  const t = await setup()
  const a = await t.startNode()
  await a.engine.pulse.runOnce()
  a.engine.backfiller.own([0, 1])
  const sent = vi.spyOn(a.db.bulk, 'query')
  expect(await a.engine.backfiller.runOnce()).toEqual({ waitMs: 1_000, changed: 0 })
  expect(sent).not.toHaveBeenCalled()
})

test.each(['skip', 'buffer_all'] as const)(
  'a backfill that has no room because the job must not overlap (%s) writes nothing, whatever its concurrency',
  async (overlap) => {
    const t = await setup()
    const a = await t.startNode()
    const { jobId } = await a.jobs.create({ ...MINUTELY, overlap })
    const states = () =>
      t.query(`select 'backfill' as what, xmin::text from backfills union all select 'timer', xmin::text from timers`)
    const counted = async (): Promise<number> => {
      const begun = vi.spyOn(a.db.bulk, 'transaction')
      for (let i = 0; i < 3; i++) await a.backfill(jobId)
      const count = begun.mock.calls.length
      begun.mockRestore()
      return count
    }
    // Another run of the job is alive, and then one of its own.
    const { runId } = await a.jobs.trigger(jobId)
    await a.backfills.create(jobId, { ...RANGE, concurrency: 5 })
    let before = await states()
    expect(await counted()).toBe(0)
    expect(await states()).toEqual(before)
    await a.runs.cancel(runId)
    expect(await a.backfill(jobId)).toBe(1)
    before = await states()
    expect(await counted()).toBe(0)
    expect(await states()).toEqual(before)
  },
)

test('whatever a backfill locks it asks for in one shard, as a store that is spread over several wants it', () => {
  const locking = allStatements().filter(({ text }) => /belfry\.backfill/.test(text) && /for update/.test(text))
  expect(locking.map(({ name }) => name)).toContain('purge_backfill')
  for (const { name, text } of locking) {
    const tables = text.match(/(?:from|update|join) belfry\.\w+ (\w+)/g) ?? []
    const aliases = tables.map((table) => table.split(' ').at(-1))
    expect([name, aliases.filter((alias) => !text.includes(`${alias}.shard = $1`))]).toEqual([name, []])
  }
})

test('backfills that are over are removed in every shard', async () => {
  const t = await setup()
  const a = await t.startNode()
  const shards = new Set<number>()
  for (let i = 0; i < 40 && shards.size < 2; i++) {
    const { jobId } = await a.jobs.create(MINUTELY)
    await a.backfills.create(jobId, RANGE)
    await a.backfill(jobId)
    shards.add(shardOfJob(jobId))
  }
  await t.query('update backfills set ended_at = created_at')
  a.clock.advance(401 * 1_440 * MINUTE)
  await a.engine.purge()
  expect(shards.size).toBe(2)
  expect(await t.query('select from backfills union all select from backfill_runs')).toEqual([])
})
