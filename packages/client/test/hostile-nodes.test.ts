import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { BelfryProcess } from './belfry-process.ts'
import { callerOf, type Item, type LeasedRun, workerOf } from './hostile-calls.ts'

/** Two nodes on one database, each in a process of its own. */
async function setup() {
  const server = inject('postgres')
  const name = `nodes_${randomBytes(6).toString('hex')}`
  const once = async (text: string) => {
    const client = new pg.Client(server)
    await client.connect()
    await client.query(text).finally(() => client.end())
  }
  await once(`create database ${name}`)
  onTestFinished(() => once(`drop database ${name} with (force)`))
  const { user, password = '', host, port } = server
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`
  const key = `admin_${randomBytes(24).toString('hex')}`
  const environment = {
    BELFRY_DATABASE_URL: `postgresql://${login}@localhost:${port}/${name}?host=${encodeURIComponent(host)}`,
    BELFRY_ADMIN_KEY: key,
    BELFRY_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
  }
  const a = new BelfryProcess(environment)
  await a.url
  const b = new BelfryProcess(environment)
  const [onA, onB] = [callerOf(await a.url, key), callerOf(await b.url, key)]
  const create = async (count: number) => {
    const jobs = Array.from({ length: count }, () => ({ queue: 'work', payload: 1 }))
    expect((await onB('POST /v1/jobs/batch', { jobs })).status).toBe(201)
  }
  const stats = async (status: string, by = onB) => {
    let count = 0
    for (let cursor = ''; ; ) {
      const { body } = await by(`GET /v1/runs?queue=work&status=${status}&limit=200${cursor}`)
      count += body.items.length
      if (!body.nextCursor) return count
      cursor = `&cursor=${body.nextCursor}`
    }
  }
  return { a, onA, onB, workerA: workerOf(onA, 'w1'), workerB: workerOf(onB, 'w1'), create, stats }
}

const outcomes = (items: Item[]) => [...new Set(items.map(({ outcome }) => outcome))]
const tokensOf = (runs: LeasedRun[]) => runs.map(({ token }) => token).sort()

test('leases of one node are kept, repeated and ended on another, also when the first one dies', async () => {
  const t = await setup()
  await t.create(600)
  const calls = [
    { requestId: 'few', max: 5 },
    { requestId: 'many', max: 500 },
  ]
  const few = await t.workerA.lease('work', calls[0])
  const many = await t.workerA.lease('work', calls[1])
  expect(few.length).toBeGreaterThan(0)
  expect(many.length).toBeGreaterThanOrEqual(300)

  // Each call is the same call there.
  for (const [i, call] of calls.entries())
    expect(tokensOf(await t.workerB.lease('work', call))).toEqual(tokensOf(i === 0 ? few : many))
  const beats = [...few, ...many].map(({ token }) => ({ token, checkpoint: 'left on b' }))
  expect(outcomes(await t.workerB.heartbeat(beats))).toEqual(['ok'])

  // Both are told how they ended, at once and differently: exactly one of them is believed.
  const both = many.slice(0, 100)
  const [byA, byB] = await Promise.all([
    t.workerA.complete(both.map(({ token }) => ({ token, status: 'succeeded', result: 'a' }))),
    t.workerB.complete(both.map(({ token }) => ({ token, status: 'canceled' }))),
  ])
  for (const [i, run] of both.entries()) {
    const told = [byA[i]?.outcome, byB[i]?.outcome].sort()
    expect(told, run.runId).toEqual(['lease_lost', 'ok'])
    if (i % 10 > 0) continue
    const { body } = await t.onB(`GET /v1/runs/${run.runId}`)
    expect(body.status).toBe(byA[i]?.outcome === 'ok' ? 'succeeded' : 'canceled')
    expect(body.attempts).toHaveLength(1)
  }

  const left = many.slice(100)
  const third = Math.floor(left.length / 3)
  const [first, second, last] = [left.slice(0, third), left.slice(third, 2 * third), left.slice(2 * third)]
  const succeeded = (runs: LeasedRun[]) => runs.map(({ token }) => ({ token, status: 'succeeded', result: 1 }))
  expect(outcomes(await t.workerB.complete(succeeded(first)))).toEqual(['ok'])
  // Said again to the node that has not heard of it.
  expect(outcomes(await t.workerA.complete(succeeded(first)))).toEqual(['ok'])

  const killed = t.a.kill()
  const during = await t.workerB.complete(succeeded(second))
  await killed
  expect(outcomes(during)).toEqual(['ok'])
  expect(tokensOf(await t.workerB.lease('work', calls[1]))).toEqual(tokensOf(last))
  expect(outcomes(await t.workerB.heartbeat(last.map(({ token }) => ({ token }))))).toEqual(['ok'])
  expect(outcomes(await t.workerB.release(last.map(({ token }) => ({ token }))))).toEqual(['ok'])
  expect(outcomes(await t.workerB.complete(succeeded(few)))).toEqual(['ok'])

  // What was given back is to be had at once, with what was left on the other node, and with no failure.
  const again = new Map<string, LeasedRun>()
  const rest = 600 - few.length - both.length - first.length - second.length
  while (again.size < rest) for (const run of await t.workerB.lease('work', { max: 1_000 })) again.set(run.runId, run)
  for (const { runId } of last)
    expect(again.get(runId)).toMatchObject({ attempt: 2, failures: 0, checkpoint: 'left on b' })
  expect(outcomes(await t.workerB.complete(succeeded([...again.values()])))).toEqual(['ok'])
  expect(await t.stats('running')).toBe(0)
  expect(await t.stats('ready')).toBe(0)
})
