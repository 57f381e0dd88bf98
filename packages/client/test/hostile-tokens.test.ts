import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Hostile, type Item, type LeasedRun, startHostile, workerOf } from './hostile-calls.ts'

let t: Hostile

beforeAll(async () => {
  t = await startHostile()
})
afterAll(() => t.stop())

const outcomes = (items: Item[]) => items.map(({ outcome }) => outcome)

/** Every way to have got a token wrong, with what each is answered; and tokens that are good, among them. */
async function setup() {
  const acme = await t.tenant()
  const other = await t.tenant()
  const foreign = await other.one()
  const again = await acme.one()
  await acme.worker.release([{ token: again.token }])
  const second = (await acme.worker.lease('work'))[0] as LeasedRun
  expect(second).toMatchObject({ runId: again.runId, attempt: 2, failures: 0 })
  const done = await acme.one()
  await acme.worker.complete([{ token: done.token, status: 'succeeded', result: 'kept' }])
  const good = await acme.leased(3)
  const whole = (good[0] as LeasedRun).token
  const bad: [token: string, outcome: string][] = [
    [foreign.token, 'unknown_token'],
    [again.token, 'lease_lost'],
    [done.token, 'lease_lost'],
    ['', 'unknown_token'],
    [' ', 'unknown_token'],
    ['null', 'unknown_token'],
    ['__proto__', 'unknown_token'],
    [`${whole} `, 'unknown_token'],
    [`${whole}${whole}`, 'unknown_token'],
    [whole.toUpperCase(), 'unknown_token'],
    ['x'.repeat(500), 'unknown_token'],
    ['A'.repeat(whole.length), 'unknown_token'],
  ]
  return { acme, other, foreign, again, second, done, good, whole, bad }
}

test('each token of a heartbeat gets its own answer, and the good ones get their due', async () => {
  const { acme, other, foreign, second, good, bad } = await setup()
  const tokens = [good[0]?.token ?? '', ...bad.map(([token]) => token), good[1]?.token ?? '']
  const leases = tokens.map((token, i) => ({ token, checkpoint: { i }, logs: [{ line: 1, message: `line ${i}` }] }))
  const told = await acme.worker.heartbeat(leases)
  expect(outcomes(told)).toEqual(['ok', ...bad.map(([, outcome]) => outcome), 'ok'])
  // What was refused left nothing behind, with nobody.
  await acme.worker.release([{ token: second.token }])
  expect((await acme.worker.lease('work'))[0]).toMatchObject({ runId: second.runId, attempt: 3 })
  expect((await other.worker.release([{ token: foreign.token }]))[0]?.outcome).toBe('ok')
  const [untouched] = await other.worker.lease('work')
  expect(untouched && 'checkpoint' in untouched).toBe(false)
  const logs = await other.write(`GET /v1/runs/${foreign.runId}/logs`)
  expect(logs.body.items).toEqual([])
})

test('each token of a completion gets its own answer, and only good ones end anything', async () => {
  const { acme, other, foreign, second, done, good, bad } = await setup()
  const tokens = [good[0]?.token ?? '', ...bad.map(([token]) => token), good[1]?.token ?? '']
  const told = await acme.worker.complete(tokens.map((token, i) => ({ token, status: 'canceled', result: i })))
  expect(outcomes(told)).toEqual(['ok', ...bad.map(([, outcome]) => outcome), 'ok'])
  expect(await acme.runOf(done.runId)).toMatchObject({ status: 'succeeded', result: 'kept' })
  expect(await acme.runOf(second.runId)).toMatchObject({ status: 'running', attempt: 2 })
  expect(await other.runOf(foreign.runId)).toMatchObject({ status: 'running', attempt: 1 })
  for (const run of good.slice(0, 2)) expect((await acme.runOf(run.runId)).status).toBe('canceled')
  expect((await acme.runOf(good[2]?.runId ?? '')).status).toBe('running')
  // The tenant whose run it is may still end it.
  expect(outcomes(await other.worker.complete([{ token: foreign.token, status: 'succeeded' }]))).toEqual(['ok'])
})

test('each token of a release gets its own answer, and only good ones go back', async () => {
  const { acme, other, foreign, again, second, good, bad } = await setup()
  const tokens = [good[0]?.token ?? '', ...bad.map(([token]) => token), good[1]?.token ?? '']
  const told = await acme.worker.release(tokens.map((token) => ({ token })))
  // The attempt before was released, and to say so again is to say the same.
  const expected = bad.map(([token, outcome]) => (token === again.token ? 'ok' : outcome))
  expect(outcomes(told)).toEqual(['ok', ...expected, 'ok'])
  expect(await acme.runOf(second.runId)).toMatchObject({ status: 'running', attempt: 2 })
  expect(await other.runOf(foreign.runId)).toMatchObject({ status: 'running' })
  for (const run of good.slice(0, 2))
    expect(await acme.runOf(run.runId)).toMatchObject({ status: 'ready', failures: 0 })
})

test('no token that is cut short or has one bit changed has any effect', async () => {
  const { acme, good, whole } = await setup()
  const run = good[0] as LeasedRun
  const cut = Array.from({ length: whole.length }, (_, length) => whole.slice(0, length))
  const bentAt = (at: number) =>
    [0, 1, 2, 3, 4, 5, 6].map((bit) => {
      const letter = String.fromCharCode(whole.charCodeAt(at) ^ (1 << bit))
      return `${whole.slice(0, at)}${letter}${whole.slice(at + 1)}`
    })
  const others = new Set(good.slice(1).map(({ token }) => token))
  const bent = Array.from({ length: whole.length }, (_, at) => bentAt(at)).flat()
  const wrong = [...cut, ...bent].filter((token) => !others.has(token))
  for (const told of [
    await acme.worker.heartbeat(wrong.map((token) => ({ token, checkpoint: 'poison' }))),
    await acme.worker.complete(wrong.map((token) => ({ token, status: 'succeeded' }))),
    await acme.worker.release(wrong.map((token) => ({ token }))),
  ]) {
    expect(told.filter(({ outcome }) => !['unknown_token', 'lease_lost'].includes(outcome))).toEqual([])
    // Whoever changed the end of it has nothing that anybody signed.
    expect(new Set(outcomes(told.slice(-7 * 22)))).toEqual(new Set(['unknown_token']))
    expect(new Set(outcomes(told.slice(0, cut.length)))).toEqual(new Set(['unknown_token']))
  }
  for (const { runId } of good) expect(await acme.runOf(runId)).toMatchObject({ status: 'running', attempt: 1 })
  await acme.worker.release([{ token: run.token }])
  const [next] = await acme.worker.lease('work')
  expect(next).toMatchObject({ runId: run.runId, attempt: 2 })
  expect(next && 'checkpoint' in next).toBe(false)
})

test('a token that comes twice in one call has one effect, and the second answer fits the first', async () => {
  const { acme, good } = await setup()
  const [one, two, three] = good as [LeasedRun, LeasedRun, LeasedRun]
  const beats = [
    { token: one.token, checkpoint: 'first', progress: { value: 0.1 } },
    { token: two.token },
    { token: one.token, checkpoint: 'second', progress: { value: 0.2 } },
  ]
  expect(outcomes(await acme.worker.heartbeat(beats))).toEqual(['ok', 'ok', 'ok'])
  expect((await acme.runOf(one.runId)).progress).toMatchObject({ value: 0.2 })
  const told = await acme.worker.complete([
    { token: one.token, status: 'succeeded', result: 1 },
    { token: two.token, status: 'failed', error: { message: 'x', retryable: false } },
    { token: one.token, status: 'succeeded', result: 2 },
    { token: two.token, status: 'succeeded' },
    { token: three.token, status: 'snoozed', retryIn: '1h' },
    { token: three.token, status: 'canceled' },
  ])
  expect(outcomes(told)).toEqual(['ok', 'ok', 'ok', 'lease_lost', 'ok', 'lease_lost'])
  expect(await acme.runOf(one.runId)).toMatchObject({ status: 'succeeded', result: 1 })
  expect(await acme.runOf(two.runId)).toMatchObject({ status: 'failed', failures: 1 })
  expect(await acme.runOf(three.runId)).toMatchObject({ status: 'waiting', failures: 0 })
  for (const { runId } of good) expect((await acme.runOf(runId)).attempts).toHaveLength(1)
})

test('a token says whose it is: another worker of the tenant may end it, another tenant with the same ids may not', async () => {
  const { acme, other, good } = await setup()
  const [one, two] = good as [LeasedRun, LeasedRun]
  const items = [{ token: one.token, status: 'succeeded' }]
  expect(outcomes(await other.worker.complete(items))).toEqual(['unknown_token'])
  expect(outcomes(await other.worker.release(items.map(({ token }) => ({ token }))))).toEqual(['unknown_token'])
  expect(outcomes(await workerOf(acme.work, 'somebody-else').complete(items))).toEqual(['ok'])
  // Reading and creating is not performing.
  for (const line of ['heartbeat', 'release']) {
    const answer = await acme.write(`POST /v1/leases/${line}`, { workerId: 'w1', leases: [{ token: two.token }] })
    expect(answer).toMatchObject({ status: 403, body: { code: 'forbidden' } })
  }
  expect((await acme.runOf(two.runId)).status).toBe('running')
})

test('a lease call that is repeated by another tenant is another call', async () => {
  const { acme, other } = await setup()
  await acme.create(2)
  await other.create(2)
  const call = { max: 2, requestId: 'the-same' }
  const mine = await acme.worker.lease('work', call)
  const theirs = await other.worker.lease('work', call)
  const ids = new Set([...mine, ...theirs].map(({ runId }) => runId))
  expect(ids.size).toBe(mine.length + theirs.length)
  expect(theirs.length).toBeGreaterThan(0)
  expect((await acme.worker.lease('work', call)).map(({ token }) => token).sort()).toEqual(
    mine.map(({ token }) => token).sort(),
  )
})
