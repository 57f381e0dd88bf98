import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry } from '../../src/belfry.ts'
import { createDatabase, today } from '../database.ts'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const CALLERS = 20
const CREATES = 100
/** A caller is told after a second of waiting; with this many ticks of an every-second job each row is held for longer. */
const TICKS = 1

/** A real node with all its loops, an every-second job that it performs, and a transaction of somebody else. */
async function setup() {
  const { schema, connection, query, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  const node = await Belfry.start({ database: inject('postgres'), schema, logger: quiet, drainMs: 0 })
  const other = new pg.Client(connection)
  await other.connect()
  onTestFinished(async () => {
    await other.end()
    await node.stop()
  })
  let tick = () => {}
  node.handle('ticks', () => tick())
  await node.jobs.create({ queue: 'ticks', every: 'PT1S', overlap: 'allow', payload: 0 })
  const nextTick = () => new Promise<void>((resolve) => (tick = resolve))
  await nextTick()
  const tenant = node.tenant({ tenantId: 1, tenant: 'default', actor: 'test' })
  const pulse = async () => (await query<{ at: Date }>('select pulsed_at as at from nodes'))[0]?.at.getTime() ?? 0
  const waiters = async () =>
    (
      await query<{ n: number }>(
        `select count(*)::int as n from pg_stat_activity
         where wait_event_type = 'Lock' and application_name = 'belfry' and position($1 in query) > 0`,
        [schema],
      )
    )[0]?.n ?? 0
  return { node, tenant, other, nextTick, pulse, waiters, query, schema }
}

type Setup = Awaited<ReturnType<typeof setup>>

/** What is held, and what callers do that needs it. */
const HELD: Record<
  string,
  (t: Setup) => Promise<{ hold: () => Promise<unknown>; act: (i: number) => Promise<unknown> }>
> = {
  'a timer': async ({ node, other }) => {
    const { jobId } = await node.jobs.create({ queue: 'idle', every: 'PT1H', overlap: 'allow', payload: 0 })
    return {
      hold: () => other.query('select from timers where job_id = $1 for update', [jobId]),
      act: () => node.jobs.trigger(jobId),
    }
  },
  'an idempotency key': async ({ node, other }) => {
    const keyed = { queue: 'idle', payload: 0, idempotencyKey: 'k' }
    return { hold: () => node.jobs.create(keyed, { tx: other }), act: () => node.jobs.create(keyed) }
  },
  'a job': async ({ node, other }) => {
    const { jobId } = await node.jobs.create({ queue: 'idle', every: 'PT1H', payload: 0 })
    return {
      hold: () => other.query('select from jobs where id = $1 for update', [jobId]),
      act: (i) => node.jobs.pause(jobId, { reason: String(i) }),
    }
  },
  "a queue's limits": async ({ tenant, other, query }) => {
    await tenant.queues.put('limited', { maxRunning: 5 })
    const [row] = await query<{ key: string }>("select key from limits where name = 'limited'")
    return {
      hold: () => other.query('select from limits where key = $1 for update', [row?.key]),
      act: (i) => tenant.queues.put('limited', { maxRunning: 10 + i }),
    }
  },
}

test.each(Object.keys(HELD))(
  'while another transaction holds %s that 20 callers want, all else goes on, and the third is told at once',
  async (what) => {
    const t = await setup()
    const { hold, act } = await (HELD[what] as (typeof HELD)[string])(t)
    await t.other.query('begin')
    await hold()
    const answers: string[] = []
    const told = (code: string) => void answers.push(code)
    const call = () =>
      Array.from({ length: CALLERS }, (_, i) =>
        act(i).then(
          () => told('done'),
          (error: { code: string }) => told(error.code),
        ),
      )
    const first = call()
    await expect.poll(() => answers.length, { interval: 5 }).toBe(CALLERS - 2)
    // The two are still waiting, and all others have been told.
    expect(new Set(answers)).toEqual(new Set(['in_progress']))
    expect(await t.waiters()).toBe(2)
    await Promise.all(Array.from({ length: CREATES }, () => t.node.jobs.create({ queue: 'idle', payload: 1 })))
    await t.node.jobs.create({ queue: 'idle', payload: 1, idempotencyKey: 'another' })
    expect(await t.waiters()).toBe(2)
    const pulse = await t.pulse()
    for (let ticks = 0; ticks < TICKS; ticks++) {
      await t.nextTick()
      void call()
    }
    await expect.poll(t.pulse).toBeGreaterThan(pulse)
    await Promise.all(first)
    await expect.poll(() => answers.length, { interval: 5 }).toBe((1 + TICKS) * CALLERS)
    expect(answers).not.toContain('done')
    await t.other.query('rollback')
    await act(0)
  },
)

test('redrives that wait for the row of their batch take two connections, and all else goes on', async () => {
  const t = await setup()
  let isBroken = true
  t.node.handle('work', () => {
    if (isBroken) throw new Error('broken')
  })
  const hourly = await t.node.jobs.create({ queue: 'idle', every: 'PT1H', overlap: 'allow', payload: 0 })
  const { jobs } = await t.node.batches.create(Array(CALLERS).fill({ queue: 'work', retry: { maxAttempts: 1 } }))
  await expect.poll(() => t.query('select from batches where finished_at is not null')).toHaveLength(1)
  isBroken = false
  const { items } = await t.tenant.deadLetters.list()
  expect(items).toHaveLength(jobs.length)
  await t.other.query('begin; select from batches for update')
  const pages = Array.from({ length: 4 }, (_, i) => items.filter((_, n) => n % 4 === i).map(({ runId }) => runId))
  const redriven = pages.map((runIds) => t.tenant.deadLetters.redrive({ runIds }))
  await expect.poll(t.waiters, { interval: 5 }).toBe(2)
  await Promise.all(Array.from({ length: CREATES }, () => t.node.jobs.create({ queue: 'idle', payload: 1 })))
  await t.node.jobs.create({ queue: 'idle', payload: 1, idempotencyKey: 'one' })
  await t.node.jobs.trigger(hourly.jobId)
  expect(await t.waiters()).toBe(2)
  await t.other.query('rollback')
  const counts = (await Promise.all(redriven)).map(({ count }) => count)
  // Those that waited for too long were left alone.
  counts.push((await t.tenant.deadLetters.redrive({ filter: {} })).count)
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(jobs.length)
})
