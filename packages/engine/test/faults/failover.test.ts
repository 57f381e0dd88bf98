import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Belfry, silentLogger } from '../../src/index.ts'
import { pause } from '../../src/runtime/pause.ts'
import { audit } from '../chaos/audit.ts'
import { BelfryNode, startNodes } from '../chaos/fleet.ts'
import { Ledger } from '../chaos/ledger.ts'
import type { PostgresServer } from '../chaos/postgres-server.ts'
import { ReplicatedServer, urlOf } from '../standby.ts'

const LEASE_MS = 3_000
const CALLERS = 20
/** Acknowledged before the failover, and after it. */
const CREATES = 300
const GOES_ON_MS = 5_000

async function setup() {
  const server = new ReplicatedServer()
  onTestFinished(() => server.remove())
  await server.start()
  const ledger = await Ledger.open()
  const { primary, standby } = server
  // The standby comes first: only a node that asks finds the primary behind it.
  const options = { database: urlOf(standby, primary), ledger, leaseMs: LEASE_MS, queues: { work: 100 } }
  const nodes = (await startNodes(2, options)) as [BelfryNode, BelfryNode]
  return { server, standby, ledger, options, nodes }
}

test('a failover under load loses nothing that was acknowledged, doubles nothing, and creates go on', async () => {
  const t = await setup()
  const retry = { maxAttempts: 20, backoff: { type: 'fixed', initial: '100ms' } }
  const acknowledged: { jobId: string; at: number }[] = []
  const refused = new Set<string>()
  let isOver = false
  const calls = Array.from({ length: CALLERS }, async (_, i) => {
    while (!isOver) {
      const delay = i % 2 === 0 ? {} : { delay: '300ms' }
      await (t.nodes[i % 2] as BelfryNode)
        .call<{ jobId: string }>('jobs.create', { queue: 'work', retry, ...delay })
        .then(
          ({ jobId }) => acknowledged.push({ jobId, at: performance.now() }),
          ({ code }: { code: string }) => refused.add(code),
        )
    }
  })
  await expect.poll(() => acknowledged.length).toBeGreaterThan(CREATES)
  // It was given only the standby: it waits for the promotion, and finds that by itself.
  const late = new BelfryNode({ ...t.options, database: urlOf(t.standby) })
  expect(await Promise.race([late.ready.then(() => 'ready'), pause(1_000).then(() => 'waits')])).toBe('waits')

  await t.server.failOver()
  const answersAt = performance.now()
  const since = () => acknowledged.filter(({ at }) => at > answersAt)
  await expect.poll(() => since().length).toBeGreaterThan(CREATES)
  expect((since()[0]?.at ?? Number.POSITIVE_INFINITY) - answersAt).toBeLessThan(GOES_ON_MS)
  isOver = true
  await Promise.all(calls)
  await late.ready
  for (const code of refused) expect(code).toBe('database_unavailable')

  const left = () => t.server.query('select from belfry.runs union all select from belfry.timers')
  await expect.poll(left).toHaveLength(0)
  const executions = await t.ledger.executions()
  expect(await audit(t.server.query.bind(t.server), 'belfry', executions)).toEqual([])
  const performed = new Set(executions.map(({ job_id }) => job_id))
  expect(acknowledged.filter(({ jobId }) => !performed.has(jobId))).toEqual([])
  expect([...t.nodes, late].filter((node) => node.endedByItself || node.errors.length > 0)).toEqual([])
})

/** One address that leads to one server or another, as a proxy in front of them does. */
async function openProxy() {
  const open = new Set<Socket>()
  let leadsTo: PostgresServer['connection']
  const proxy = createServer((caller) => {
    const server = connect(`${leadsTo.host}/.s.PGSQL.${leadsTo.port}`)
    for (const [one, other] of [
      [caller, server],
      [server, caller],
    ] as const) {
      open.add(one)
      one.on('error', () => {})
      one.on('close', () => other.destroy())
      one.pipe(other)
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
    proxy.close()
  })
  const { port } = proxy.address() as AddressInfo
  const leadTo = ({ connection }: PostgresServer) => {
    leadsTo = connection
  }
  return { port, leadTo }
}

test('connections that an address leads to the old primary, a standby now, are closed, and the new primary is found', async () => {
  const server = new ReplicatedServer()
  onTestFinished(() => server.remove())
  await server.start()
  const proxy = await openProxy()
  proxy.leadTo(server.primary)
  const { user, database } = server.primary.connection
  const connection = { host: '127.0.0.1', port: proxy.port, user, database }
  const belfry = await Belfry.start({ database: connection, logger: silentLogger })
  onTestFinished(() => belfry.stop())
  const { jobId } = await belfry.jobs.create({ queue: 'work', every: '1h' })

  await server.failOver()
  await server.rebuild()
  const databaseCheck = async () => (await belfry.readiness()).checks.find(({ name }) => name === 'database')
  const why = 'the database takes no writes: it is read-only'
  await expect.poll(databaseCheck).toEqual({ name: 'database', ok: false, detail: why })
  await expect(belfry.ping()).rejects.toMatchObject({ code: 'database_unavailable', message: why })
  await expect(belfry.jobs.pause(jobId)).rejects.toMatchObject({ code: 'database_unavailable' })
  const toStandby = () => server.standby.query(`select from pg_stat_activity where application_name ~ '^belfry'`)
  await expect.poll(toStandby).toHaveLength(0)

  proxy.leadTo(server.primary)
  await expect.poll(databaseCheck).toEqual({ name: 'database', ok: true })
  expect(await belfry.jobs.pause(jobId)).toEqual({ status: 'paused' })
})
