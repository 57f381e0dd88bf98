import { expect, test } from 'vitest'
import { shardOfJob } from '../../src/job/ids.ts'
import { CAUSE, RUN_STATE } from '../../src/job/states.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { readHeads } from '../../src/shards/pulse.sql.ts'
import { MINUTE, type Node, START, setup } from './setup.ts'

const MINUTELY = { cron: '* * * * *', startAt: new Date(START - 20 * MINUTE), queue: 'reports', payload: 1 } as const
const RANGE = { from: new Date(START - 20 * MINUTE), to: new Date(START) }
const nominal = (minute: number): Date => new Date(START + minute * MINUTE)
const past = Array.from({ length: 20 }, (_, i) => nominal(i - 20))

async function start(t: Awaited<ReturnType<typeof setup>>, overlap: 'allow' | 'skip', concurrency: number) {
  const [a, b] = [await t.startNode(), await t.startNode()]
  const { jobId } = await a.jobs.create({ ...MINUTELY, overlap })
  const { backfillId } = await a.backfills.create(jobId, { ...RANGE, concurrency })
  const made = async () =>
    (
      await t.query<{ nominal_at: Date }>(
        `select nominal_at from runs where cause = ${CAUSE.backfill} union all select nominal_at from attempts where final and cause = ${CAUSE.backfill} order by 1`,
      )
    ).map((row) => row.nominal_at)
  return { a, b, jobId, backfillId, made }
}

/** What a pulse tells of ready runs, whoever made them; then they are leased, performed and ended. */
async function perform({ engine, claim }: Node): Promise<void> {
  const queueId = await engine.registry.queueId(1, 'reports')
  const [heads = []] = await readHeads(engine.db, [queueId])
  engine.handlers.sweep(queueId, heads)
  await claim('reports')
  await engine.finisher.drained()
}

test('two nodes that take one backfill further at once make each run once, and no more than there is room for', async () => {
  const t = await setup()
  const { a, b, jobId, backfillId, made } = await start(t, 'allow', 3)
  await a.handle('reports', () => {})
  for (let round = 0; round < 40; round++) {
    await Promise.all([a.backfill(jobId), b.backfill(jobId)])
    const [row] = await t.query<{ alive: number }>('select count(*)::int as alive from runs')
    expect(row?.alive).toBeLessThanOrEqual(3)
    await perform(a)
    if ((await a.backfills.get(backfillId))?.status === 'completed') break
  }
  expect(await made()).toEqual(past)
  expect(await b.backfills.get(backfillId)).toMatchObject({
    status: 'completed',
    counts: { total: 20, created: 20, leftOut: 0, succeeded: 20 },
  })
})

test('a node that dies between making the runs and their commit has made none, and the next one goes on', async () => {
  const t = await setup()
  const { a, b, jobId, backfillId, made } = await start(t, 'allow', 3)
  await a.backfill(jobId)
  expect(await made()).toEqual(past.slice(0, 3))
  await b.handle('reports', () => {})
  for (const table of ['runs', 'backfill_runs', 'backfills']) {
    await perform(b)
    const before = (await made()).length
    const hold = await t.holdAt(table === 'backfills' ? 'update' : 'insert', table, jobId)
    const advancing = a.backfill(jobId).catch(() => 'died')
    await t.untilBlocked()
    await t.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and position($1 in query) > 0 and pid <> pg_backend_pid()`,
      [t.schema],
    )
    expect(await advancing).toBe('died')
    await hold.release()
    await t.query('drop function hold cascade')
    expect(await made()).toHaveLength(before)
    await b.backfill(jobId)
    expect(await made()).toEqual(past.slice(0, before + 3))
  }
  const done = { created: 12, leftOut: 0 }
  expect(await b.backfills.get(backfillId)).toMatchObject({ position: new Date(START - 9 * MINUTE + 1), counts: done })
})

test('one that is canceled while its next runs are made has them canceled too, and gets no others', async () => {
  const t = await setup()
  const { a, b, jobId, backfillId, made } = await start(t, 'allow', 3)
  const hold = await t.holdAt('insert', 'runs', jobId)
  const advancing = a.backfill(jobId)
  await t.untilBlocked()
  const canceling = b.backfills.cancel(backfillId)
  await t.untilBlocked(2)
  await hold.release()
  await advancing
  expect(await canceling).toMatchObject({ status: 'canceled', counts: { created: 3, canceled: 3, running: 0 } })
  await Promise.all([a.backfill(jobId), b.backfill(jobId)])
  expect(await made()).toEqual(past.slice(0, 3))
  expect(await t.query('select from runs')).toEqual([])
})

test('a promoter that read the timer before a backfill made its run looks again, and lets the scheduled time wait', async () => {
  const t = await setup()
  const { a, b, jobId } = await start(t, 'skip', 1)
  const timer = () => t.query('select version, nominal_at, decided_until from timers')
  await b.readTimers()
  const [before] = await timer()
  await a.backfill(jobId)
  const [raised] = await timer()
  expect(raised).toEqual({ ...before, version: Number(before?.version) + 1 })
  await b.promote()
  expect(await timer()).toEqual([raised])
  b.engine.reader.want(shardOfJob(jobId), START)
  await b.readTimers()
  await b.promote()
  expect(await t.query('select nominal_at, cause, state from runs order by nominal_at')).toEqual([
    { nominal_at: nominal(-20), cause: CAUSE.backfill, state: RUN_STATE.ready },
    { nominal_at: nominal(0), cause: CAUSE.schedule, state: RUN_STATE.blocked },
  ])
  expect(await t.query('select from skips')).toEqual([])
})

test.each([
  ['allow', 4],
  ['skip', 1],
] as const)(
  'backfill, promotion and triggers at once, overlap %s: every time is decided once',
  async (overlap, concurrency) => {
    const t = await setup()
    const random = seededRandom(7)
    const { a, b, jobId, backfillId, made } = await start(t, overlap, concurrency)
    for (const node of [a, b]) await node.handle('reports', () => {})
    const triggered: string[] = []
    const trigger = (node: Node) =>
      node.jobs.trigger(jobId).then(
        ({ runId }) => void triggered.push(runId),
        (error: { code: string }) => expect(['overlap', 'in_progress']).toContain(error.code),
      )
    const promote = async (node: Node) => {
      node.engine.reader.want(shardOfJob(jobId), START)
      await node.readTimers()
      await node.promote()
    }
    // So late that a due timer is no longer held for a handler that is about to have room.
    for (const node of [a, b]) node.clock.advance(MINUTE / 2 + 1)
    let minute = 0
    for (; minute < 40; minute++) {
      for (const node of [a, b]) node.clock.advance(MINUTE)
      const acts = [
        promote,
        promote,
        (node: Node) => node.backfill(jobId),
        (node: Node) => node.backfill(jobId),
        trigger,
      ]
      const chosen = acts.filter(() => random.float() < 0.7).sort(() => random.float() - 0.5)
      await Promise.all(chosen.map((act, i) => act(i % 2 === 0 ? a : b)))
      if (overlap === 'skip') {
        const alive = await t.query(`select from runs where state <> ${RUN_STATE.blocked}`)
        expect(alive.length).toBeLessThanOrEqual(1)
      }
      const mine = await t.query(`select from runs where cause = ${CAUSE.backfill}`)
      expect(mine.length).toBeLessThanOrEqual(concurrency)
      const node = random.float() < 0.5 ? a : b
      if (random.float() < 0.8) await perform(node)
      await node.engine.waking.waker.runOnce()
    }
    for (let rest = 0; rest < 40; rest++) {
      await promote(a)
      await perform(a)
      a.engine.waking.jobs.look(jobId)
      await a.engine.waking.waker.runOnce()
      await a.backfill(jobId)
    }
    expect(await made()).toEqual(past)
    expect(await a.backfills.get(backfillId)).toMatchObject({
      status: 'completed',
      counts: { created: 20, succeeded: 20 },
    })
    const all = await t.occurrences()
    expect(new Set(all.map(({ nominal_at }) => Number(nominal_at))).size).toBe(all.length)
    const skips = await t.query<{ from: Date; to: Date; count: number }>(
      'select from_nominal as from, to_nominal as to, count from skips',
    )
    const skipped = skips.reduce((sum, { count }) => sum + count, 0)
    const scheduled = all.filter(({ nominal_at }) => Number(nominal_at) >= START && Number(nominal_at) % MINUTE === 0)
    expect(scheduled.length + skipped).toBe(41)
    expect(all).toHaveLength(20 + scheduled.length + triggered.length)
    if (overlap === 'allow') expect(triggered.length).toBeGreaterThan(5)
  },
)
