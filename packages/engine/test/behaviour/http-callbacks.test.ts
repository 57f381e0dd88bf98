import { expect, test } from 'vitest'
import { renewLeases } from '../../src/leases/heartbeat.sql.ts'
import type { Fence } from '../../src/leases/lease.ts'
import { ok, startHttpNodes, startTarget, willCallBack } from './http-kit.ts'
import { MINUTE, SECOND } from './kit.ts'

const twice = { maxAttempts: 2, backoff: { type: 'fixed', initial: '1s', jitter: 0 } } as const

/** A run whose target has said that it will report later. */
async function setup({ nodes = 1, ...more }: { nodes?: number; retry?: object; delivery?: 'at_most_once' } = {}) {
  const t = await startHttpNodes({ nodes })
  const target = await startTarget(t.clock, willCallBack)
  const { jobId } = await t.jobs.create({ http: { url: target.url }, timeout: '10m', retry: twice, ...more })
  await t.settle()
  const tokenOf = (call = 0) => target.seen[call]?.callbackUrl.split('/v1/callbacks/')[1] ?? ''
  const attempts = () =>
    t.query(
      `select number, counted, final, outcome, failure_class as class, status_code as status, error, result from attempts`,
    )
  return { ...t, target, jobId, tokenOf, attempts, callbacks: t.node.engine.http.callbacks }
}

test('a run that waits for its callback holds no slot, is not called again, and ends by the callback', async () => {
  const t = await setup()
  expect(t.target.seen[0]?.callbackUrl).toMatch(/^http:\/\/belfry\.example\/v1\/callbacks\/[\w.-]+$/)
  expect(t.node.active()).toBe(0)
  await t.pass(5 * MINUTE)
  expect(t.target.seen).toHaveLength(1)
  expect(await t.attempts()).toEqual([])
  expect(await t.callbacks.complete(t.tokenOf(), { status: 'succeeded', result: { rows: 42 } })).toBe('ok')
  expect(await t.attempts()).toMatchObject([{ number: 1, final: true, outcome: 1, status: 202, result: { rows: 42 } }])
})

test('saying the same again is harmless, and saying something else changes nothing', async () => {
  const t = await setup()
  for (let i = 0; i < 3; i++) expect(await t.callbacks.complete(t.tokenOf(), { status: 'succeeded' })).toBe('ok')
  expect(await t.callbacks.complete(t.tokenOf(), { status: 'failed' })).toBe('lease_lost')
  expect(await t.attempts()).toHaveLength(1)
})

test('a callback that reports a failure follows the retry policy', async () => {
  const t = await setup()
  expect(await t.callbacks.complete(t.tokenOf(), { status: 'failed', error: 'no space' })).toBe('ok')
  expect(await t.callbacks.complete(t.tokenOf(), { status: 'failed', error: 'no space' })).toBe('ok')
  t.target.answer = ok
  await t.pass(2 * SECOND)
  expect(await t.attempts()).toMatchObject([
    { number: 1, counted: true, final: false, outcome: 2, class: 6, error: 'no space' },
    { number: 2, final: true, outcome: 1, status: 200 },
  ])
})

test('past its deadline the attempt is closed as timed out, and a late callback is told so', async () => {
  const t = await setup()
  await t.pass(10 * MINUTE)
  expect((await t.attempts())[0]).toMatchObject({ number: 1, counted: true, final: false, outcome: 2, class: 1 })
  expect(await t.callbacks.complete(t.tokenOf(), { status: 'succeeded' })).toBe('lease_lost')
  await t.pass(2 * SECOND)
  expect(t.target.seen.map(({ attempt }) => attempt)).toEqual([1, 2])
  expect(await t.callbacks.complete(t.tokenOf(1), { status: 'succeeded' })).toBe('ok')
})

test('a run that may be performed at most once and never calls back is lost', async () => {
  const t = await setup({ delivery: 'at_most_once' })
  await t.pass(11 * MINUTE)
  expect(await t.attempts()).toMatchObject([{ number: 1, final: true, outcome: 4, class: 1 }])
  expect(t.target.seen).toHaveLength(1)
})

test('another node takes the callback, also after the node that made the call was killed', async () => {
  const t = await setup({ nodes: 2 })
  await t.node.kill()
  await t.nodes[1]?.step()
  expect(await t.nodes[1]?.engine.http.callbacks.complete(t.tokenOf(), { status: 'succeeded' })).toBe('ok')
  expect(await t.query('select outcome from attempts')).toEqual([{ outcome: 1 }])
})

test('a token that was changed, cut or made up is unknown', async () => {
  const t = await setup()
  const token = t.tokenOf()
  const flipped = [...token].map((letter, i) => token.slice(0, i) + (letter === 'A' ? 'B' : 'A') + token.slice(i + 1))
  const forged = [...flipped, token.slice(0, -1), `${token}A`, '', 'A'.repeat(token.length), '../../etc/passwd']
  for (const one of forged) expect(await t.callbacks.complete(one, { status: 'succeeded' }), one).toBe('unknown_token')
  expect(await t.query('select 1 from runs')).toHaveLength(1)
})

test('a callback that comes before the answer to the request ends the run just the same', async () => {
  const t = await startHttpNodes()
  const { callbacks } = t.node.engine.http
  const target = await startTarget(t.clock, async (response, request, seen) => {
    const token = seen.callbackUrl.split('/v1/callbacks/')[1] ?? ''
    expect(await callbacks.complete(token, { status: 'succeeded' })).toBe('ok')
    willCallBack(response, request, seen)
  })
  await t.jobs.create({ http: { url: target.url } })
  await t.pass(MINUTE)
  expect(target.seen).toHaveLength(1)
  expect(await t.query('select number, outcome, final from attempts')).toEqual([{ number: 1, outcome: 1, final: true }])
})

test('a run that waits for its callback can be canceled', async () => {
  const t = await setup()
  await t.jobs.cancel(t.jobId)
  await t.pass(15 * SECOND)
  expect(await t.attempts()).toMatchObject([{ number: 1, final: true, outcome: 3, class: 8 }])
})

test('a heartbeat that arrives late does not shorten the lease of a run that waits for its callback', async () => {
  const t = await setup()
  const [fence] = await t.query<Fence>(
    `select shard, job_id as "jobId", extract(epoch from nominal_at)::float8 * 1000 as "nominalAt", attempt, holder from runs`,
  )
  await renewLeases(t.node.db, fence ? [fence] : [], 30 * SECOND)
  await t.pass(5 * MINUTE)
  expect(await t.attempts()).toEqual([])
})
