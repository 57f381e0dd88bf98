import { expect, inject, onTestFinished, test } from 'vitest'
import { Jobs } from '../../src/jobs.ts'
import { startTestNode } from '../../src/testing/test-node.ts'
import { createDatabase, KIT_DAYS } from '../database.ts'
import { START } from './kit.ts'

const QUEUE = 'shared'
const terms = { shards: 2, start: START, leaseMs: 30_000, cancelGraceMs: 10_000 }

type Node = Awaited<ReturnType<Awaited<ReturnType<typeof setup>>['startNode']>>

/** Tenants of one queue that they share, and nodes that make no step by themselves. */
async function setup(tenants: Record<string, number>) {
  const { schema, query, drop } = await createDatabase({ days: KIT_DAYS })
  onTestFinished(drop)
  let seed = 0
  const names = new Map<number, string>()
  /** What was performed, in order. */
  const started: { tenant: string; n: number }[] = []
  const failing = new Set<string>()
  const startNode = async (now = START) => {
    const node = await startTestNode({ database: inject('postgres'), schema, seed: ++seed, ...terms, start: now })
    const { engine, db, clock, readers } = node
    let isStopped = false
    const stop = async () => {
      if (isStopped) return
      isStopped = true
      await engine.stop(0)
      await readers.close()
      await db.close()
    }
    onTestFinished(stop)
    const jobs = new Jobs(engine)
    const pulse = async () => {
      engine.pulse.sweepNext()
      await engine.pulse.runOnce()
    }
    await pulse()
    return {
      engine,
      clock,
      stop,
      pulse,
      create: (tenant: string, count: number, priority = 5) =>
        jobs.createMany(Array.from({ length: count }, (_, n) => ({ tenant, queue: QUEUE, payload: { n }, priority }))),
      /** Serves the queue, so many at a time. */
      serve: async (concurrency: number) => {
        const queueId = await engine.registry.queueId(1, QUEUE)
        engine.handle(
          queueId,
          (run) => {
            const { n } = run.payload as { n: number }
            if (failing.has(names.get(run.lease.tenantId) ?? '?')) throw new Error('not yet')
            started.push({ tenant: names.get(run.lease.tenantId) ?? '?', n })
          },
          concurrency,
        )
        await pulse()
      },
      /** One claim, and the end of what it took. */
      claim: async () => {
        await engine.handlers.claimer(await engine.registry.queueId(1, QUEUE))?.runOnce()
        await new Promise((resolve) => setImmediate(resolve))
        await engine.handlers.settled()
      },
    }
  }
  const first = await startNode()
  await first.engine.registry.shareQueue(QUEUE)
  for (const [name, weight] of Object.entries(tenants)) {
    const { id } = await first.engine.admin.tenants.create({ name, weight }, 'test')
    names.set(id, name)
  }
  await first.pulse()
  const take = (count: number) => started.splice(0, count)
  return { startNode, first, started, take, failing, query }
}

const equal = (...names: string[]): Record<string, number> => Object.fromEntries(names.map((name) => [name, 1]))
const countOf = (runs: readonly { tenant: string }[], tenant: string) =>
  runs.filter((run) => run.tenant === tenant).length

async function serveSome(node: Node, started: readonly unknown[], count: number) {
  for (let claims = 0; claims < count && started.length < count; claims++) await node.claim()
}

test('nine tenants start their runs as if alone beside one that has a thousand', async () => {
  const others = ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']
  const t = await setup(equal('a', ...others))
  await t.first.create('a', 1_000)
  for (const other of others) await t.first.create(other, 2)
  await t.first.serve(10)
  await t.first.claim()
  await t.first.claim()
  // Two rounds of ten: one of each tenant in each.
  expect(
    t
      .take(20)
      .map((run) => run.tenant)
      .sort(),
  ).toEqual(['a', 'a', ...others, ...others].sort())
  await t.first.claim()
  expect(countOf(t.take(10), 'a')).toBe(10)
  // Whoever comes while the backlog is being worked off is next.
  await t.first.create('c', 1)
  await t.first.claim()
  expect(countOf(t.take(10), 'c')).toBe(1)
})

test('weights 1, 2 and 4 are shares of a backlog', async () => {
  const t = await setup({ one: 1, two: 2, four: 4 })
  for (const tenant of ['one', 'two', 'four']) await t.first.create(tenant, 600)
  await t.first.serve(70)
  await serveSome(t.first, t.started, 700)
  const served = t.take(700)
  expect(served).toHaveLength(700)
  expect(Math.abs(countOf(served, 'one') - 100)).toBeLessThanOrEqual(5)
  expect(Math.abs(countOf(served, 'two') - 200)).toBeLessThanOrEqual(10)
  expect(Math.abs(countOf(served, 'four') - 400)).toBeLessThanOrEqual(20)
})

test('a tenant that enters through three nodes gets one share', async () => {
  const t = await setup(equal('a', 'b'))
  const nodes = [t.first, await t.startNode(), await t.startNode()]
  for (let second = 0; second < 4; second++) {
    for (const node of nodes) await node.create('a', 20)
    await t.first.create('b', 60)
    for (let i = 0; i < 2; i++) for (const node of nodes) await node.pulse()
    for (const node of nodes) node.clock.advance(1_000)
  }
  await t.first.serve(60)
  await serveSome(t.first, t.started, 360)
  const share = countOf(t.take(360), 'a') / 360
  expect(share).toBeGreaterThan(0.45)
  expect(share).toBeLessThan(0.55)
})

test.each([
  ['is ahead of the clock', 1_000],
  ['has waited for an hour', 3_600_000],
])('a restarted node starves neither a backlog that %s nor new work', async (_, passMs) => {
  const t = await setup(equal('a', 'b'))
  await t.first.create('a', 300)
  await t.first.serve(100)
  await t.first.claim()
  t.take(100)
  await t.first.stop()
  const node = await t.startNode(START + passMs)
  await node.serve(40)
  await node.create('b', 200)
  for (let claims = 0; claims < 5; claims++) await node.claim()
  const served = t.take(200)
  expect(countOf(served, 'a')).toBeGreaterThanOrEqual(80)
  expect(countOf(served, 'b')).toBeGreaterThanOrEqual(80)
})

test('one level of priority is worth 30 s', async () => {
  const t = await setup(equal('a', 'b', 'c'))
  await t.first.create('a', 1, 5)
  t.first.clock.advance(59_000)
  await t.first.create('b', 1, 7)
  t.first.clock.advance(2_000)
  await t.first.create('c', 1, 7)
  await t.first.serve(1)
  for (let claims = 0; claims < 3; claims++) await t.first.claim()
  expect(t.take(3).map((run) => run.tenant)).toEqual(['b', 'a', 'c'])
})

test('priority 0 starts within its bound beside priority 9 that never ends', async () => {
  const t = await setup(equal('patient', 'busy'))
  const stepMs = 10_000
  const perStep = 100
  const backlog = 100
  /** There is always more than can be done until the next step. */
  const fill = async () => {
    const waiting = await t.query('select from runs where state = 0 and priority = 9')
    await t.first.create('busy', Math.max(0, perStep + backlog - waiting.length), 9)
  }
  await fill()
  await t.first.create('patient', 1, 0)
  await t.first.serve(perStep)
  let passedMs = 0
  for (; passedMs < 600_000; passedMs += stepMs) {
    await t.first.claim()
    const served = t.take(t.started.length)
    expect(served.length).toBeGreaterThanOrEqual(perStep)
    if (countOf(served, 'patient') === 1) break
    t.first.clock.advance(stepMs)
    await t.first.pulse()
    await fill()
  }
  // What was ready before it takes twenty seconds; and nine levels are worth 270 s, so it is not much earlier either.
  expect(passedMs).toBeLessThanOrEqual(270_000 + ((perStep + backlog) / perStep) * stepMs)
  expect(passedMs).toBeGreaterThanOrEqual(240_000)
})

test('a run that is tried again is not first for its age, nor behind the backlog', async () => {
  const t = await setup(equal('a', 'b'))
  await t.first.create('a', 300)
  await t.first.create('b', 1)
  t.failing.add('b')
  await t.first.serve(100)
  await t.first.claim()
  t.failing.clear()
  // Ten seconds later its backoff is over, and the queue as far ahead of the clock.
  t.first.clock.advance(10_000)
  await t.first.claim()
  t.take(200)
  const { engine } = t.first
  engine.waking.own([0, 1])
  for (const shard of [0, 1]) engine.waking.shards.look(shard, t.first.clock.now())
  expect((await engine.waking.waker.runOnce()).woken).toBe(1)
  const [woken, next] = await t.query<{ turn: string }>(
    'select turn from runs where state = 0 order by attempt desc, turn limit 2',
  )
  expect(Number(next?.turn) - Number(woken?.turn)).toBeGreaterThan(0)
  expect(Number(next?.turn) - Number(woken?.turn)).toBeLessThanOrEqual(100 * 100_000)
})
