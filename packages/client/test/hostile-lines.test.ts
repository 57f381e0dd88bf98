import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Hostile, startHostile } from './hostile-calls.ts'

let t: Hostile

beforeAll(async () => {
  t = await startHostile()
})
afterAll(() => t.stop())

async function setup() {
  const acme = await t.tenant()
  const run = await acme.one()
  const linesOf = async () => {
    const { body } = await acme.write(`GET /v1/runs/${run.runId}/logs?limit=200`)
    return (body.items as { line: number; message: string }[]).map(({ line }) => line)
  }
  return { acme, run, linesOf }
}

test('a line that stands twice in one call is stored once', async () => {
  const { acme, run, linesOf } = await setup()
  const told = await acme.worker.heartbeat([
    {
      token: run.token,
      logs: [
        { line: 1, message: 'a' },
        { line: 1, message: 'b' },
      ],
    },
    {
      token: run.token,
      logs: [
        { line: 1, message: 'c' },
        { line: 2, message: 'd' },
      ],
    },
  ])
  expect(told.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
  expect(await linesOf()).toEqual([1, 2])
})

test('a heartbeat that is repeated while it is under way stores its lines once', async () => {
  const { acme, run, linesOf } = await setup()
  const beat = [{ token: run.token, logs: Array.from({ length: 20 }, (_, i) => ({ line: i + 1, message: 'm' })) }]
  await Promise.all(Array.from({ length: 20 }, () => acme.worker.heartbeat(beat)))
  expect(await linesOf()).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
})

test('an attempt has a thousand lines at most, however they come, and is told so', async () => {
  const { acme, run } = await setup()
  const lines = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ line: from + i, message: 'm' }))
  await acme.worker.heartbeat([{ token: run.token, logs: lines(1, 999) }])
  const calls = [2_000_000_000, 1_500, 990, 5_000].map((from) =>
    acme.worker.heartbeat([{ token: run.token, logs: lines(from, 1_000) }]),
  )
  for (const told of await Promise.all(calls)) expect(told[0]?.outcome).toBe('ok')
  await acme.worker.heartbeat([
    { token: run.token, logs: Array.from({ length: 5_000 }, () => ({ message: 'no number' })) },
  ])
  const stored: number[] = []
  for (let cursor = ''; ; ) {
    const { body } = await acme.write(`GET /v1/runs/${run.runId}/logs?limit=200${cursor}`)
    stored.push(...(body.items as { line: number }[]).map(({ line }) => line))
    if (!body.nextCursor) break
    cursor = `&cursor=${body.nextCursor}`
  }
  expect(stored.length).toBeLessThanOrEqual(1_000)
  expect(new Set(stored).size).toBe(stored.length)
  expect(stored.filter((line) => line > 999).length).toBeLessThanOrEqual(1)
})
