import { expect, onTestFinished, test } from 'vitest'
import { circuitKey } from '../../src/executors/http/circuits.ts'
import { Jobs } from '../../src/jobs.ts'
import { fail, hang, ok, startHttpNodes, startTarget } from './http-kit.ts'
import { MINUTE, SECOND } from './kit.ts'

const FAILURES_THAT_OPEN = 20
const OPEN_MS = 10 * SECOND
const once = { maxAttempts: 1 }

async function setup(options: Parameters<typeof startHttpNodes>[0] = {}) {
  const t = await startHttpNodes(options)
  const target = await startTarget(t.clock, fail)
  const call = (count = 1, more: object = {}) =>
    t.jobs.createMany(Array(count).fill({ http: { url: target.url }, timeout: '5s', retry: once, ...more }))
  const circuits = () => t.node.engine.http.circuits.list(1)
  const waiting = () =>
    t.query<{ due: number; failures: number }>(
      `select extract(epoch from due_at)::float8 * 1000 as due, failures from runs where state = 2 order by due_at`,
    )
  /** Lets the target fail so often that its circuit opens. */
  const open = async () => {
    await call(FAILURES_THAT_OPEN)
    await t.settle()
    target.seen.length = 0
  }
  return { ...t, target, call, circuits, waiting, open }
}

test('a circuit opens when half of at least 20 attempts failed, and not before', async () => {
  const t = await setup()
  t.target.answer = ok
  await t.call(10)
  await t.settle()
  t.target.answer = fail
  await t.call(9)
  await t.settle()
  expect(await t.circuits()).toEqual([])
  await t.call(1)
  await t.settle()
  expect(await t.circuits()).toMatchObject([
    { origin: t.target.url, state: 'open', failures: 10, reason: expect.stringContaining('500') },
  ])
})

test('failures that are older than half a minute do not count', async () => {
  const t = await setup()
  await t.call(FAILURES_THAT_OPEN - 1)
  await t.settle()
  await t.pass(40 * SECOND)
  await t.call(FAILURES_THAT_OPEN - 1)
  await t.settle()
  expect(await t.circuits()).toEqual([])
})

test('a target that refuses requests, or asks for fewer, is well', async () => {
  const t = await setup()
  let calls = 0
  t.target.answer = (response) => response.writeHead(++calls % 2 ? 404 : 429).end()
  await t.call(2 * FAILURES_THAT_OPEN)
  await t.settle()
  expect(await t.circuits()).toEqual([])
})

test('while a circuit is open runs wait for its probe, uncounted, and the target is left alone', async () => {
  const t = await setup()
  await t.open()
  const now = t.clock.now()
  await t.call(30)
  await t.pass(OPEN_MS - 1)
  expect(t.target.seen).toEqual([])
  const waiting = await t.waiting()
  expect(waiting).toHaveLength(30)
  // The first is the probe, the others come behind it at a bounded rate.
  expect(waiting.map(({ due }) => due - now)).toEqual(waiting.map((_, i) => OPEN_MS + i * 100))
  expect(waiting.every(({ failures }) => failures === 0)).toBe(true)
  expect(
    await t.query(
      `select distinct outcome, failure_class, counted, final, started_at from attempts where number = 1 and not counted`,
    ),
  ).toEqual([{ outcome: 6, failure_class: 10, counted: false, final: false, started_at: null }])
})

test('another tenant of the same origin, and another origin, are not affected', async () => {
  const t = await setup()
  await t.open()
  const other = await startTarget(t.clock)
  await t.query(`insert into tenants (id, name) values (2, 'other')`)
  await t.jobs.create({ http: { url: t.target.url }, tenant: 'other', retry: once })
  await t.jobs.create({ http: { url: other.url } })
  await t.settle()
  expect(t.target.seen).toHaveLength(1)
  expect(other.seen).toHaveLength(1)
})

test('when the probe succeeds the circuit closes, and what waited comes back at a bounded rate', async () => {
  const t = await setup()
  await t.open()
  await t.call(100)
  await t.settle()
  t.target.answer = ok
  await t.pass(MINUTE)
  expect(await t.circuits()).toEqual([])
  expect(t.target.seen).toHaveLength(100)
  const perSecond = new Map<number, number>()
  for (const { at } of t.target.seen) {
    const second = Math.floor(at / SECOND)
    perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
  }
  expect(Math.max(...perSecond.values())).toBeLessThanOrEqual(11)
  expect(await t.query('select 1 from runs')).toEqual([])
})

test('each probe that fails doubles the time to the next one, up to five minutes', async () => {
  const t = await setup()
  await t.open()
  const openedAt = t.clock.now()
  await t.call(1, { retry: { maxAttempts: 20, backoff: { type: 'fixed', initial: '1s', jitter: 0 } } })
  await t.pass(25 * MINUTE)
  const gaps = t.target.seen.map(({ at }, i) => Math.round((at - (t.target.seen[i - 1]?.at ?? openedAt)) / SECOND))
  expect(gaps).toEqual([10, 20, 40, 80, 160, 300, 300, 300])
  expect(await t.circuits()).toMatchObject([{ failures: FAILURES_THAT_OPEN + 8, state: 'open' }])
})

test('one run of all nodes is let through as the probe', async () => {
  const t = await setup({ nodes: 3 })
  await t.open()
  await t.call(60)
  await t.settle()
  t.target.answer = hang
  t.clock.advance(OPEN_MS)
  // All nodes at once, with many runs that are due.
  await t.query(`update runs set due_at = $1 where state = 2`, [new Date(t.clock.now())])
  await Promise.all(t.nodes.map((node) => node.step()))
  await Promise.all(t.nodes.map((node) => node.step()))
  expect(t.target.seen).toHaveLength(1)
  expect(await t.circuits()).toMatchObject([{ state: 'half_open' }])
})

test('a circuit that one node opened is known to the others without a word between them', async () => {
  const t = await setup({ nodes: 2 })
  const [first, second] = t.nodes
  await t.call(FAILURES_THAT_OPEN)
  await first?.step()
  await first?.step()
  expect(await t.circuits()).toHaveLength(1)
  const before = t.target.seen.length
  t.clock.advance(2 * SECOND)
  await t.call(5)
  await second?.step()
  await second?.step()
  expect(t.target.seen).toHaveLength(before)
  expect(await t.waiting()).toHaveLength(5)
})

test('a circuit outlives the nodes that opened it', async () => {
  const t = await setup({ nodes: 2 })
  await t.open()
  for (const node of t.nodes) await node.kill()
  const fresh = await t.startNode(9)
  await t.query('delete from nodes where id <> $1', [fresh.engine.nodeId])
  await new Jobs(fresh.engine).createMany(Array(5).fill({ http: { url: t.target.url } }))
  for (let i = 0; i < 3; i++) await fresh.step()
  expect(t.target.seen).toEqual([])
  expect(await t.waiting()).toHaveLength(5)
})

test('a node that dies with the probe holds up the next one for a minute, not for ever', async () => {
  const t = await setup({ nodes: 2 })
  const [first, second] = t.nodes
  await t.open()
  t.target.answer = hang
  await t.call(1, { timeout: '1h' })
  await t.settle()
  t.clock.advance(OPEN_MS)
  for (let i = 0; i < 3 && t.target.seen.length === 0; i++) await first?.step()
  expect(await t.circuits()).toMatchObject([{ state: 'half_open' }])
  await first?.kill()
  t.target.answer = ok
  await new Jobs((second ?? t.node).engine).create({ http: { url: t.target.url } })
  for (let passed = 0; passed < 70; passed += 5) {
    await second?.step()
    await second?.step()
    if (passed < 55) expect(t.target.seen).toHaveLength(1)
    t.clock.advance(5 * SECOND)
  }
  expect(await second?.engine.http.circuits.list(1)).toEqual([])
  expect(t.target.seen.length).toBeGreaterThanOrEqual(2)
})

test('calls that hang since before the circuit opened do not keep the probe away', async () => {
  const t = await setup({ http: { slots: { perOrigin: 20, total: 100 } } })
  t.target.answer = hang
  await t.call(19, { timeout: '1h' })
  await t.node.step()
  t.target.answer = fail
  await t.open()
  t.target.answer = ok
  await t.call(2)
  await t.pass(15 * SECOND)
  expect(t.target.seen).toHaveLength(2)
  expect(await t.circuits()).toEqual([])
})

test('a circuit that is closed by hand lets calls through, and is closed once', async () => {
  const t = await setup()
  await t.open()
  const { circuits } = t.node.engine.http
  expect(await circuits.reset(1, t.target.url)).toBe(true)
  expect(await circuits.reset(1, t.target.url)).toBe(false)
  t.target.answer = ok
  await t.call(3)
  await t.settle()
  expect(t.target.seen).toHaveLength(3)
})

test('a circuit that is closed by hand while its opening is still being written stays closed', async () => {
  const t = await setup()
  const origin = t.target.url
  const { circuits } = t.node.engine.http
  const holder = await t.pool.connect()
  onTestFinished(() => holder.release(true))
  await holder.query('begin')
  await holder.query(
    `insert into circuits (tenant_id, origin, opened_at, probe_at, open_ms, failures, reason) values (1, $1, now(), now(), 1, 1, '')`,
    [origin],
  )
  const circuit = circuits.of(circuitKey(1, origin), 1, origin, t.clock.now())
  for (let i = 0; i < FAILURES_THAT_OPEN; i++) circuits.record(circuit, circuit.generation, 'ill', 'broken')
  const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and position(format('"%s".circuits', current_schema()) in query) > 0`
  await expect.poll(() => t.query(waiting)).toHaveLength(1)
  const read = circuits.read()
  const closed = circuits.reset(1, origin)
  await holder.query('rollback')
  expect(await closed).toBe(true)
  await read
  expect(await t.circuits()).toEqual([])
  expect(circuit.open).toBe(null)
})

test('what waited for a circuit that is closed by hand goes on from then on, one after the other', async () => {
  const t = await setup()
  await t.open()
  await t.call(30)
  await t.settle()
  t.target.answer = ok
  await t.node.engine.http.circuits.reset(1, t.target.url)
  await t.pass(4 * SECOND)
  expect(t.target.seen).toHaveLength(30)
  expect(new Set(t.target.seen.map(({ at }) => at)).size).toBe(30)
})

test('a run whose retry policy does not let it live so long ends instead of waiting', async () => {
  const t = await setup()
  await t.open()
  await t.call(1, { retry: { maxAttempts: 3, maxAge: '5s' } })
  await t.settle()
  expect(await t.query('select failure_class from dead_letters where failure_class = 10')).toHaveLength(1)
})
