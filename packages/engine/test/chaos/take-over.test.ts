import { expect, onTestFinished, test } from 'vitest'
import { shardsOwnedBy } from '../../src/shards/owners.ts'
import { createDatabase } from '../database.ts'
import { audit } from './audit.ts'
import { BelfryNode, startNodes } from './fleet.ts'
import { Ledger } from './ledger.ts'

const SHARDS = 64
/** What the machine may add while other tests keep it busy. */
const SLACK_MS = 3_000

async function setup({ leaseMs }: { leaseMs: number }) {
  const database = await createDatabase({ fresh: true })
  onTestFinished(() => database.drop())
  const ledger = await Ledger.open()
  const { connection, schema } = database
  const options = { database: connection, schema, ledger, leaseMs, queues: { work: 200 } }
  const nodeIds = async () => (await database.query<{ id: string }>('select id from nodes')).map(({ id }) => id)
  return { database, ledger, options, nodeIds }
}

test('the timers of a node that is killed fire again within 3 s', async () => {
  const t = await setup({ leaseMs: 30_000 })
  const victim = new BelfryNode(t.options)
  await victim.ready
  await expect.poll(t.nodeIds).toHaveLength(1)
  const [victimId] = await t.nodeIds()
  const [survivor] = await startNodes(2, t.options)
  await expect.poll(t.nodeIds).toHaveLength(3)
  const ids = await t.nodeIds()

  // One every 2 ms for the coming seconds, on random shards: each shard has one every 130 ms.
  await (survivor as BelfryNode).createMany(
    Array.from({ length: 4_000 }, (_, i) => ({ queue: 'work', delay: `${2_000 + i * 2}ms` })),
  )
  await expect.poll(() => t.ledger.count(), { interval: 50 }).toBeGreaterThan(500)
  await victim.kill()
  const killedAt = Date.now()
  const lost = new Set(shardsOwnedBy(victimId as string, ids, SHARDS))
  expect(lost.size).toBeGreaterThan(5)

  const performed = () => t.database.query<{ count: number }>('select count(*)::int as count from timers')
  await expect.poll(async () => (await performed())[0]?.count, { interval: 100 }).toBe(0)
  const shardOf = (jobId: string) => Number.parseInt(jobId.slice(15, 18), 16)
  const first = new Map<number, number>()
  for (const { job_id, began_at } of await t.ledger.executions('began_at > $1', [new Date(killedAt)])) {
    const shard = shardOf(job_id)
    if (lost.has(shard) && !first.has(shard)) first.set(shard, began_at.getTime() - killedAt)
  }
  expect(first.size).toBe(lost.size)
  expect(Math.max(...first.values())).toBeLessThan(3_000 + SLACK_MS)
})

test('a holder that was stopped past its lease and wakes up late writes nothing', async () => {
  const t = await setup({ leaseMs: 2_000 })
  const sleeper = new BelfryNode({ ...t.options, queues: { work: 200, mine: 1 } })
  await sleeper.ready
  const jobs = await sleeper.createMany(
    Array.from({ length: 20 }, () => ({ queue: 'work', payload: { ms: 1_500 }, retry: { maxAttempts: 3 } })),
  )
  await expect.poll(() => t.ledger.count()).toBe(jobs.length)
  sleeper.signal('SIGSTOP')
  await startNodes(1, t.options)
  const succeeded = () => t.database.query('select from attempts where final and outcome = 1')
  await expect.poll(async () => (await succeeded()).length).toBe(jobs.length)
  const before = await t.database.query('select * from attempts order by job_id, number')

  sleeper.signal('SIGCONT')
  const late = `attempt = 1 and ended_at is not null`
  await expect.poll(() => t.ledger.count(late)).toBe(jobs.length)
  // Its finishes have been sent and answered once a run that only it can perform has gone through.
  const [after] = await sleeper.createMany([{ queue: 'mine' }])
  const isDone = () => t.database.query('select from attempts where job_id = $1', [after?.jobId])
  await expect.poll(async () => (await isDone()).length).toBe(1)
  const history = await t.database.query('select * from attempts where job_id <> $1 order by job_id, number', [
    after?.jobId,
  ])
  expect(history).toEqual(before)
  expect(await audit(t.database.query, t.database.schema, await t.ledger.executions())).toEqual([])
  expect(sleeper.endedByItself).toBe(false)
})
