import { randomBytes } from 'node:crypto'
import { Belfry, silentLogger } from '@belfry/engine'
import { startServer } from '@belfry/server'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { BelfryClient } from '../src/index.ts'

const ROUNDS = 25

/** Two nodes on one schema. */
async function setup() {
  const database = inject('postgres')
  const schema = `repeats_${randomBytes(6).toString('hex')}`
  const adminKey = `admin_${randomBytes(24).toString('hex')}`
  onTestFinished(async () => {
    const client = new pg.Client(database)
    await client.connect()
    await client.query(`drop schema ${schema} cascade`).finally(() => client.end())
  })
  const node = async () => {
    const belfry = await Belfry.start({ database, schema, logger: silentLogger })
    const options = { belfry: () => belfry, adminKey, host: '127.0.0.1', port: 0, logger: silentLogger }
    const server = await startServer(options)
    onTestFinished(async () => {
      await server.stop()
      await belfry.stop()
    })
    return new BelfryClient({ url: `http://127.0.0.1:${server.port}`, key: adminKey })
  }
  const a = await node()
  return { a, b: await node() }
}

test('a lease call that is repeated answers the same leases on any node, whatever others lease meanwhile', async () => {
  const { a, b } = await setup()
  // Always more than anybody asks for: what comes instead of the same leases would be others.
  for (let i = 0; i < 4; i++)
    await a.jobs.createMany(Array.from({ length: ROUNDS * 20 }, () => ({ queue: 'work', payload: 1 })))
  const lease = async (node: BelfryClient, workerId: string, requestId: string, max: number) => {
    const call = { workerId, requestId, max, waitMs: 10_000, leaseMs: 600_000 }
    return (await node.leases.lease('work', call)).runs.map(({ token }) => token).sort()
  }
  const others: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    // One that the other node has never heard of.
    const own = [`worker-${round}`, `call-${round}`, 5] as const
    const first = await lease(a, ...own)
    expect(first.length).toBeGreaterThan(0)
    const beside = (node: BelfryClient, i: number) => lease(node, i % 2 ? 'steady' : `new-${round}`, `${round}-${i}`, i)
    const [one, two, there, here, three, four] = await Promise.all([
      beside(b, 1),
      beside(a, 2),
      lease(b, ...own),
      lease(a, ...own),
      beside(b, 4),
      beside(a, 3),
    ])
    expect(there, `round ${round}, on the other node`).toEqual(first)
    expect(here, `round ${round}, on the same node`).toEqual(first)
    others.push(...first, ...one, ...two, ...three, ...four)
  }
  expect(new Set(others).size).toBe(others.length)
  // What they were told is theirs is theirs.
  const held = await b.leases.heartbeat({ workerId: 'steady', leases: others.map((token) => ({ token })) })
  expect(held.leases.filter(({ outcome }) => outcome !== 'ok')).toEqual([])
})
