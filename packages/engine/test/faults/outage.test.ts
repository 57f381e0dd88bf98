import { expect, onTestFinished, test } from 'vitest'
import { pause } from '../../src/runtime/pause.ts'
import { audit, auditRecurring } from '../chaos/audit.ts'
import { BelfryNode, startNodes } from '../chaos/fleet.ts'
import { Ledger } from '../chaos/ledger.ts'
import { PostgresServer } from '../chaos/postgres-server.ts'

/** Longer than any lease and than the patience of a create; 30 s is the promise, tried by hand with this set. */
const OUTAGE_MS = Number(process.env.BELFRY_OUTAGE_MS ?? 12_000)
const LEASE_MS = 3_000
const PATIENCE_MS = 10_000
const MB = 1024 * 1024

async function setup() {
  const server = new PostgresServer()
  await server.start()
  onTestFinished(() => server.remove())
  const ledger = await Ledger.open()
  const options = { database: server.connection, ledger, leaseMs: LEASE_MS, queues: { work: 100 } }
  const counts = async (text: string) => (await server.query<{ count: number }>(text))[0]?.count
  return { server, ledger, options, counts, query: server.query.bind(server) }
}

test('an outage of the database loses nothing, doubles nothing and ends by itself', async () => {
  const t = await setup()
  const nodes = await startNodes(2, t.options)
  const [one, other] = nodes as [BelfryNode, BelfryNode]
  const long = await one.createMany(
    Array.from({ length: 20 }, () => ({ queue: 'work', payload: { ms: OUTAGE_MS + 6_000 } })),
  )
  await expect.poll(() => t.ledger.count()).toBe(long.length)
  const recurring = await one.createMany([{ queue: 'work', every: '1s', overlap: 'allow' }])
  const timers = await one.createMany(
    Array.from({ length: 300 }, (_, i) => ({ queue: 'work', delay: `${500 + (i * OUTAGE_MS) / 300}ms` })),
  )
  const memoryBefore = await other.call<number>('memory')

  await t.server.kill()
  const wentAt = performance.now()
  const creates = other
    .call<{ code?: string }[]>(
      'createEach',
      Array.from({ length: 5_000 }, () => ({ queue: 'work', payload: 'x'.repeat(500) })),
    )
    .then((answers) => ({ answers, tookMs: performance.now() - wentAt }))
  const changes = Promise.allSettled([
    other.call('jobs.create', { queue: 'never-seen' }),
    other.call('jobs.cancel', recurring[0]?.jobId),
    other.call('jobs.pause', recurring[0]?.jobId),
    other.call('jobs.trigger', recurring[0]?.jobId),
    other.call('runs.cancel', `${recurring[0]?.jobId}.1`),
  ])
  await pause(OUTAGE_MS - (performance.now() - wentAt))
  const memoryIn = await other.call<number>('memory')
  await t.server.start()

  const { answers, tookMs } = await creates
  expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(['database_unavailable']))
  expect(tookMs).toBeLessThan(PATIENCE_MS + 4_000)
  for (const change of await changes)
    expect(change).toMatchObject({ status: 'rejected', reason: { code: 'database_unavailable' } })
  expect(memoryIn - memoryBefore).toBeLessThan(64 * MB)

  const open = 'select count(*)::int as count from belfry.timers where schedule_id is null'
  await expect.poll(() => t.counts(open)).toBe(0)
  await one.call('jobs.cancel', recurring[0]?.jobId, { running: 'finish' })
  const live = 'select count(*)::int as count from belfry.runs'
  await expect.poll(() => t.counts(live)).toBe(0)

  const executions = await t.ledger.executions()
  expect(await audit(t.query, 'belfry', executions)).toEqual([])
  expect(await auditRecurring(t.query, 'belfry', recurring[0]?.jobId ?? '', 1_000)).toEqual([])
  const [asked, ran] = [[...long, ...timers], new Map<string, number>()]
  for (const { job_id } of executions) ran.set(job_id, (ran.get(job_id) ?? 0) + 1)
  expect(asked.filter(({ jobId }) => ran.get(jobId) !== 1)).toEqual([])
  expect(nodes.filter((node) => node.endedByItself || node.errors.length > 0)).toEqual([])
})

test('a database that falls silent without closing its connections is an outage too', async () => {
  const t = await setup()
  const [node] = (await startNodes(1, t.options)) as [BelfryNode]
  const long = await node.createMany(Array.from({ length: 5 }, () => ({ queue: 'work', payload: { ms: 14_000 } })))
  await expect.poll(() => t.ledger.count()).toBe(long.length)

  t.server.freeze()
  const silentAt = performance.now()
  const answers = await node.call<{ code?: string }[]>('createEach', Array(200).fill({ queue: 'work' }))
  expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(['database_unavailable']))
  // A last try may have begun just before its patience was over, and takes 10 s to be taken for lost.
  expect(performance.now() - silentAt).toBeLessThan(2 * PATIENCE_MS + 4_000)
  t.server.thaw()

  const live = 'select count(*)::int as count from belfry.runs'
  await expect.poll(() => t.counts(live)).toBe(0)
  const executions = await t.ledger.executions()
  expect(await audit(t.query, 'belfry', executions)).toEqual([])
  const performed = executions.filter(({ job_id }) => long.some(({ jobId }) => jobId === job_id))
  expect(performed).toHaveLength(long.length)
  expect(node.endedByItself).toBe(false)
})

test('a node that is started before its database waits for it', async () => {
  const t = await setup()
  await t.server.kill()
  const node = new BelfryNode(t.options)
  expect(await Promise.race([node.ready.then(() => 'ready'), pause(2_000).then(() => 'waits')])).toBe('waits')
  await t.server.start()
  await node.ready
  await node.createMany([{ queue: 'work' }])
  await expect.poll(() => t.ledger.count()).toBe(1)
})
