import { expect, test, vi } from 'vitest'
import { unlessRenewed } from '../../src/executors/startable.ts'
import { OUTCOME } from '../../src/job/states.ts'
import { leasesOfCalls } from '../../src/leases/recover.sql.ts'
import { startLossyProxy } from './lossy-proxy.ts'
import { LEASE_MS, MANY } from './many-runs.ts'
import { START, setup } from './setup.ts'
import { tokensOf, workerOf } from './worker.ts'

/** Two nodes, and so many runs that are ready. */
async function setupRuns(count: number, job: object = {}) {
  const t = await setup()
  const [node, other] = [await t.startNode(), await t.startNode()]
  await node.jobs.createMany(
    Array.from({ length: count }, (_, payload) => ({ queue: 'work', payload, ...job })) as never,
  )
  const history = () =>
    t.query<{ number: number; outcome: number; n: number }>(
      'select number, outcome, count(*)::int as n from attempts group by 1, 2 order by 1, 2',
    )
  const count_ = async (what: string) => (await t.query<{ n: number }>(`select count(*)::int as n from ${what}`))[0]?.n
  const wake = async () => {
    await node.engine.waking.waker.runOnce()
    await other.engine.waking.waker.runOnce()
  }
  return { ...t, node, other, history, count: count_, wake }
}

const succeeded = (n: number) => ({ number: 1, outcome: OUTCOME.succeeded, n })

test('a lease call that is repeated on another node answers the same leases', async () => {
  const t = await setupRuns(3)
  const first = await workerOf(t.node).lease({ max: 2, requestId: 'r' })
  expect(first.runs).toMatchObject([
    { attempt: 1, payload: 0 },
    { attempt: 1, payload: 1 },
  ])
  for (const node of [t.node, t.other]) {
    node.clock.advance(1)
    const again = await workerOf(node).lease({ max: 2, requestId: 'r' })
    expect(tokensOf(again).sort()).toEqual(tokensOf(first).sort())
  }
  // What was claimed for the call before it turned out to be a repeated one goes back.
  const next = async () => {
    await t.wake()
    return (await workerOf(t.other).lease({ max: 2 })).runs.map(({ payload, failures }) => [payload, failures])
  }
  await expect.poll(next).toEqual([[2, 0]])
  expect((await workerOf(t.other, 'w2').lease({ max: 2, requestId: 'r' })).runs).toEqual([])
})

test('a lease call that is repeated is answered with its leases even if it does not wait, or its worker drains', async () => {
  const t = await setupRuns(1)
  const first = await workerOf(t.node).lease({ requestId: 'r' })
  t.other.clock.advance(1)
  expect(tokensOf(await workerOf(t.other).lease({ requestId: 'r' }))).toEqual(tokensOf(first))
  const third = await t.startNode()
  await workerOf(third).heartbeat([])
  third.engine.remote.setDraining(1, 'w', true)
  const again = await workerOf(third).lease({ requestId: 'r', waitMs: 20_000 })
  expect(again).toMatchObject({ draining: true, runs: [{ token: first.runs[0]?.token }] })
})

test('of a backlog, calls that come one right after the other are served by one claim', async () => {
  const t = await setupRuns(20)
  expect((await workerOf(t.node, 'first').lease()).runs).toHaveLength(1)
  const query = vi.spyOn(t.node.engine.db.vital, 'query')
  const calls = []
  for (let i = 0; i < 10; i++) {
    calls.push(workerOf(t.node, `w${i}`).lease({ waitMs: 20_000 }))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect((await Promise.all(calls)).map(({ runs }) => runs.length)).toEqual(Array(10).fill(1))
  expect(query.mock.calls.filter(([{ name }]) => name.startsWith('claim_'))).toHaveLength(1)
})

test('the runs of a large lease end once each, however often that is said', async () => {
  const t = await setupRuns(MANY)
  const worker = workerOf(t.node)
  const tokens = tokensOf(await worker.lease({ max: 1_000 }))
  expect([await t.count('runs'), tokens.length]).toEqual([MANY, MANY])
  const ok = Array(MANY).fill('ok')
  expect(await worker.complete(tokens)).toEqual(ok)
  expect(await worker.complete(tokens)).toEqual(ok)
  expect(await workerOf(t.other).complete(tokens)).toEqual(ok)
  expect(await worker.complete(tokens, { status: 'canceled' })).toEqual(Array(MANY).fill('lease_lost'))
  expect(await t.history()).toEqual([succeeded(MANY)])
})

test('completions of the same leases that come at once, here and elsewhere, are all told ok and kept once', async () => {
  const t = await setupRuns(MANY)
  const [here, elsewhere] = [workerOf(t.node), workerOf(t.other)]
  const tokens = tokensOf(await here.lease({ max: 1_000 }))
  const all = await Promise.all([here.complete(tokens), elsewhere.complete(tokens), here.complete(tokens)])
  expect(new Set(all.flat())).toEqual(new Set(['ok']))
  expect(await t.history()).toEqual([succeeded(MANY)])
  expect([await t.count('runs')]).toEqual([0])
})

test('runs can be ended through a node that did not lease them, and the others still through theirs', async () => {
  const t = await setupRuns(MANY)
  const here = workerOf(t.node)
  const tokens = tokensOf(await here.lease({ max: 1_000 }))
  expect(await workerOf(t.other).complete(tokens.slice(0, 50))).toEqual(Array(50).fill('ok'))
  expect(await here.complete(tokens.slice(50))).toEqual(Array(MANY - 50).fill('ok'))
  expect(await t.history()).toEqual([succeeded(MANY)])
})

test('a heartbeat renews leases through any node', async () => {
  const t = await setupRuns(MANY)
  const tokens = tokensOf(await workerOf(t.node).lease({ max: 1_000 }))
  for (const node of [t.node, t.other]) node.clock.advance(LEASE_MS - 1)
  expect(await workerOf(t.other).heartbeat(tokens.slice(0, 60))).toEqual(Array(60).fill('ok'))
  expect(await workerOf(t.node).heartbeat(tokens.slice(60))).toEqual(Array(60).fill('ok'))
  for (const node of [t.node, t.other]) node.clock.advance(LEASE_MS - 1)
  expect(await t.other.reap()).toBe(0)
  expect(await workerOf(t.node).complete(tokens)).toEqual(Array(MANY).fill('ok'))
  expect(await t.history()).toEqual([succeeded(MANY)])
})

test('what a worker lets expire is performed again, and its late word is refused', async () => {
  const t = await setupRuns(MANY)
  const late = workerOf(t.node)
  const tokens = tokensOf(await late.lease({ max: 1_000 }))
  expect(await late.complete(tokens.slice(0, 20))).toEqual(Array(20).fill('ok'))
  for (const node of [t.node, t.other]) node.clock.advance(LEASE_MS)
  expect(await t.other.reap()).toBe(MANY - 20)
  const again = await workerOf(t.other, 'w2').lease({ max: 1_000 })
  expect(again.runs).toHaveLength(MANY - 20)
  expect(new Set(again.runs.map((run) => [run.attempt, run.failures].join()))).toEqual(new Set(['2,1']))
  expect(await late.heartbeat(tokens.slice(20))).toEqual(Array(MANY - 20).fill('lease_lost'))
  expect(await late.complete(tokens.slice(20))).toEqual(Array(MANY - 20).fill('lease_lost'))
  expect(await late.complete(tokens.slice(0, 20))).toEqual(Array(20).fill('ok'))
  expect(await workerOf(t.other, 'w2').complete(tokensOf(again))).toEqual(Array(MANY - 20).fill('ok'))
  expect(await t.history()).toEqual([
    succeeded(20),
    { number: 1, outcome: OUTCOME.failed, n: MANY - 20 },
    { number: 2, outcome: OUTCOME.succeeded, n: MANY - 20 },
  ])
})

test('a completion after a release and a new lease by the same worker is refused', async () => {
  const t = await setupRuns(1)
  const worker = workerOf(t.node)
  const [first = ''] = tokensOf(await worker.lease({ requestId: 'a' }))
  expect(await worker.release([first])).toEqual(['ok'])
  await t.wake()
  const second = await worker.lease({ requestId: 'b' })
  expect(second.runs).toMatchObject([{ attempt: 2, failures: 0 }])
  expect(await worker.complete([first])).toEqual(['lease_lost'])
  expect(await worker.release([first])).toEqual(['ok'])
  expect(await worker.complete(tokensOf(second))).toEqual(['ok'])
})

test('what was claimed for a call whose client went away meanwhile is ready again, and counts for nothing', async () => {
  const t = await setupRuns(1)
  const [job] = await t.query<{ job_id: string }>('select job_id from runs')
  const held = await t.holdAt('update', 'runs', job?.job_id ?? '')
  const gone = new AbortController()
  const leasing = workerOf(t.node).lease({ waitMs: 20_000 }, gone.signal)
  await t.untilBlocked()
  gone.abort()
  await held.release()
  expect((await leasing).runs).toEqual([])
  await t.node.engine.finisher.drained()
  await expect
    .poll(async () => {
      await t.wake()
      return (await t.query('select attempt, failures, state from runs'))[0]
    })
    .toEqual({ attempt: 1, failures: 0, state: 0 })
  expect((await workerOf(t.other).lease()).runs).toMatchObject([{ attempt: 2, failures: 0 }])
})

test.each([1, 2])(
  'runs that were leased for %i calls into a lost connection reach the calls that wait',
  async (calls) => {
    const t = await setup()
    const proxy = await startLossyProxy()
    const node = await t.startNode(proxy.connection)
    const leasing = Array.from({ length: calls }, (_, i) => workerOf(node, `w${i}`).lease({ max: 10, waitMs: 20_000 }))
    await expect.poll(() => node.engine.remote.calls.waiting).toBe(calls)
    const lost = proxy.lose('claim_runs', 'answered')
    await node.jobs.createMany(Array(4).fill({ queue: 'work' }) as never)
    await lost
    proxy.goOn()
    const answers = await Promise.all(leasing)
    expect(answers.map(({ runs }) => runs.length)).toEqual(Array(calls).fill(4 / calls))
    const tokens = answers.flatMap(tokensOf)
    expect(await workerOf(node).complete(tokens)).toEqual(Array(4).fill('ok'))
    expect(await t.query('select number from attempts')).toEqual(Array(4).fill({ number: 1 }))
  },
)

test('while work is short it goes round those who wait', async () => {
  const t = await setup()
  const node = await t.startNode()
  const leasing = Array.from({ length: 3 }, (_, i) => workerOf(node, `w${i}`).lease({ max: 10, waitMs: 20_000 }))
  await expect.poll(() => node.engine.remote.calls.waiting).toBe(3)
  await node.jobs.createMany(Array(6).fill({ queue: 'work' }) as never)
  const answers = await Promise.all(leasing)
  expect(answers.map(({ runs }) => runs.length)).toEqual([2, 2, 2])
})

test('a run that may be performed at most once is not given to a worker to wait there', async () => {
  const t = await setupRuns(5, { delivery: 'at_most_once' })
  const worker = workerOf(t.node)
  expect((await worker.lease({ max: 3, prefetch: 3 })).runs).toEqual([])
  const { runs } = await worker.lease({ max: 3, prefetch: 1 })
  expect(runs).toMatchObject([{ atMostOnce: true }, { atMostOnce: true }])
})

test('that a run shall stop is said on an open call and with the next heartbeat, and nothing extends it', async () => {
  const t = await setupRuns(1)
  const worker = workerOf(t.node)
  const { runs } = await worker.lease()
  const [run] = runs
  const waiting = worker.lease({ waitMs: 20_000 })
  expect(await t.node.runs.cancel(run?.runId ?? '')).toEqual({ status: 'canceling' })
  expect(await waiting).toEqual({ runs: [], cancelRequested: [run?.token] })
  expect(await worker.heartbeat([run?.token ?? ''])).toEqual(['cancel_requested'])
  expect(await worker.complete([run?.token ?? ''], { status: 'canceled' })).toEqual(['ok'])
  expect(await t.history()).toEqual([{ number: 1, outcome: OUTCOME.canceled, n: 1 }])
})

test('tokens that were changed, made up or belong to another tenant are unknown, and stop no other', async () => {
  const t = await setupRuns(2)
  await t.query(`insert into tenants (id, name) values (2, 'other')`)
  const worker = workerOf(t.node)
  const [token = '', good = ''] = tokensOf(await worker.lease({ max: 2 }))
  const parts = token.split('.')
  const wrong = [
    ...['', 'x', '.', '.'.repeat(6), token.slice(1), token.slice(0, -1), `${token}x`, `${token}.`, 'x'.repeat(10_000)],
    ...parts.map((part, i) => parts.map((one, j) => (i === j ? flipped(part) : one)).join('.')),
    ...parts.map((_, i) => parts.filter((_one, j) => i !== j).join('.')),
  ].filter((one) => one !== token)
  for (const call of ['complete', 'heartbeat', 'release'] as const) {
    const outcomes = await worker[call](wrong)
    // Another run or attempt of the same call is well signed, and not live.
    expect(new Set(outcomes)).toEqual(new Set(['unknown_token', 'lease_lost']))
    expect(outcomes.filter((one) => one === 'lease_lost').length).toBeLessThanOrEqual(3)
  }
  expect(await workerOf(t.node, 'w', 2).complete([token, good])).toEqual(['unknown_token', 'unknown_token'])
  expect(await worker.complete([...wrong.slice(0, 3), token, 'x', good])).toEqual([
    ...['unknown_token', 'unknown_token', 'unknown_token', 'ok', 'unknown_token', 'ok'],
  ])
  expect(await t.history()).toEqual([succeeded(2)])
})

const flipped = (part: string): string => (part.at(-1) === '1' ? `${part.slice(0, -1)}2` : `${part.slice(0, -1)}1`)

test('a queue that is paused gives nothing until it goes on', async () => {
  const t = await setupRuns(1)
  await t.query(`update queues set paused_at = now() where name = 'work'`)
  await t.node.engine.pulse.runOnce()
  expect((await workerOf(t.node).lease()).runs).toEqual([])
  const waiting = workerOf(t.node).lease({ waitMs: 20_000 })
  await t.query(`update queues set paused_at = null where name = 'work'`)
  await t.node.engine.pulse.runOnce()
  expect((await waiting).runs).toHaveLength(1)
})

test('a call that waited long enough is answered with nothing', async () => {
  const t = await setup()
  const node = await t.startNode()
  const waiting = workerOf(node).lease({ waitMs: 5_000 })
  await expect.poll(() => node.engine.remote.calls.waiting).toBe(1)
  node.clock.advance(5_000)
  expect(await waiting).toEqual({ runs: [] })
})

test('checkpoints, progress and log lines are kept by the live attempt alone, and lines once', async () => {
  const t = await setupRuns(1)
  const worker = workerOf(t.node)
  const { runs } = await worker.lease()
  const { runId = '', token = '' } = runs[0] ?? {}
  const said = {
    checkpoint: { row: 7 },
    progress: { value: 0.5, text: 'half' },
    logs: [{ line: 1, message: 'one' }, { line: 2, message: 'two' }, { message: 'three' }],
  }
  expect(await worker.heartbeat([token], said)).toEqual(['ok'])
  expect(await workerOf(t.other).heartbeat([token], { logs: said.logs.slice(0, 2) })).toEqual(['ok'])
  expect(await t.node.runs.get(runId)).toMatchObject({ progress: { value: 0.5, text: 'half' } })
  expect((await t.node.runs.logs(runId)).map(({ line, message }) => [line, message])).toEqual([
    [1, 'one'],
    [2, 'two'],
    [3, 'three'],
  ])
  expect(await worker.complete([token], { status: 'failed', error: { message: 'no' }, retryInMs: 0 })).toEqual(['ok'])
  expect(await worker.heartbeat([token], { checkpoint: 'late' })).toEqual(['lease_lost'])
  await t.wake()
  const again = await workerOf(t.other).lease()
  expect(again.runs).toMatchObject([{ attempt: 2, failures: 1, checkpoint: { row: 7 } }])
  expect(await workerOf(t.other).complete(tokensOf(again))).toEqual(['ok'])
  expect(await t.count('checkpoints')).toBe(0)
})

test('whoever writes another run into his token logs nowhere, and hides no line of others', async () => {
  const t = await setupRuns(2)
  await t.query(`insert into tenants (id, name) values (2, 'other')`)
  const queueId = await t.node.engine.registry.queueId(2, 'work')
  await t.node.engine.intake.create({ tenant: 'other', queue: 'work' })
  expect(queueId).toBeGreaterThan(0)
  const [own, foreign] = [workerOf(t.node, 'w', 2), workerOf(t.node)]
  const [mine = ''] = tokensOf(await own.lease())
  const [victim] = (await foreign.lease()).runs
  const forged = [...(victim?.token ?? '').split('.').slice(0, 3), ...mine.split('.').slice(3)].join('.')
  const logs = [{ line: 1, message: 'forged' }, { message: 'forged too' }]
  expect(await own.heartbeat([forged], { logs })).toEqual(['lease_lost'])
  expect(await foreign.heartbeat([victim?.token ?? ''], { logs: [{ line: 1, message: 'true' }] })).toEqual(['ok'])
  expect(await t.query('select tenant_id, message from attempt_logs')).toEqual([{ tenant_id: 1, message: 'true' }])
})

test('a node that gives back what its caller did not hear of leaves alone what was renewed since', async () => {
  const t = await setupRuns(1)
  const first = await workerOf(t.node).lease({ requestId: 'r' })
  // Its caller did not hear of it and asks another node; then the first one finds that he is gone.
  t.other.clock.advance(1_000)
  const again = await workerOf(t.other).lease({ requestId: 'r' })
  expect(tokensOf(again)).toEqual(tokensOf(first))
  const [lease] = (await leasesOfCalls(t.node.db, [holderOf(tokensOf(first)[0] ?? '')])).map((one) => ({
    ...one,
    leaseUntil: first.runs[0]?.leaseUntil.getTime() ?? 0,
  }))
  const outcome = lease && (await t.node.engine.finisher.finished(unlessRenewed(lease, t.node.clock.now())))
  expect(outcome).toBe('lease_lost')
  expect(await workerOf(t.other).complete(tokensOf(again))).toEqual(['ok'])
})

const holderOf = (token: string): string => token.split('.')[3] ?? ''

test('a checkpoint that was left through another node goes when its run is over', async () => {
  const t = await setupRuns(1)
  const tokens = tokensOf(await workerOf(t.node).lease())
  expect(await workerOf(t.other).heartbeat(tokens, { checkpoint: 1 })).toEqual(['ok'])
  await t.node.engine.purge()
  expect(await t.count('checkpoints')).toBe(1)
  expect(await workerOf(t.node).complete(tokens)).toEqual(['ok'])
  await t.node.engine.purge()
  expect(await t.count('checkpoints')).toBe(0)
})

test('a call that does not wait is given what is ready, also while calls are compared with those before', async () => {
  const t = await setupRuns(100)
  let isOver = false
  const compare = async () => {
    while (!isOver) {
      await t.node.engine.remote.calls.tidy(START)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const comparing = compare()
  const given: number[] = []
  for (let i = 0; i < 100; i++) given.push((await workerOf(t.node, `w${i}`).lease({ requestId: 'r' })).runs.length)
  isOver = true
  await comparing
  expect(given).toEqual(Array(100).fill(1))
})
