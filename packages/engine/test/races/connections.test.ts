import { connect, createServer } from 'node:net'
import { expect, inject, onTestFinished, test } from 'vitest'
import { Belfry } from '../../src/belfry.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { CONNECTIONS } from '../../src/store/connection-budget.ts'
import { Database } from '../../src/store/database.ts'
import { lockTimer } from '../../src/timers/lock-timer.sql.ts'
import { createDatabase, today } from '../database.ts'

const MOST = 20
const AT_ONCE = 40

/** A way to the server of the tests that counts the connections. */
async function countConnections() {
  const { host, port, ...rest } = inject('postgres')
  const upstream = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
  let [open, most] = [0, 0]
  const server = createServer((client) => {
    most = Math.max(most, ++open)
    const database = connect(upstream)
    client.pipe(database).pipe(client)
    for (const socket of [client, database]) socket.on('error', () => {})
    client.on('close', () => {
      open--
      database.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port: own } = server.address() as { port: number }
  return { connection: { ...rest, host: '127.0.0.1', port: own }, most: () => most }
}

test('a node never has more than 20 connections, whatever it is asked at once', async () => {
  const { schema, drop } = await createDatabase({ days: today() })
  onTestFinished(drop)
  const counted = await countConnections()
  const node = await Belfry.start({ database: counted.connection, schema, drainMs: 0 })
  onTestFinished(() => node.stop())
  const { jobs: ofTenant, deadLetters } = node.tenant({ tenantId: 1, tenant: 'default', actor: 'test' })
  const times = <Result>(work: (i: number) => Promise<Result>) => Array.from({ length: AT_ONCE }, (_, i) => work(i))
  for (let i = 0; i < 8; i++) node.handle(`queue-${i}`, () => {}, { concurrency: 50 })
  const jobs = await Promise.all(
    times(() => node.jobs.create({ queue: 'idle', every: 'PT1H', overlap: 'allow', payload: 0 })),
  )
  const thousands = Array(1_500).fill({ queue: 'queue-0', payload: 0 })
  await Promise.all([
    ...times((i) => node.jobs.create({ queue: `queue-${i % 8}`, payload: 0 })),
    ...times((i) => node.jobs.create({ queue: `queue-${i % 8}`, payload: 0, idempotencyKey: `${i}` })),
    ...times((i) => node.jobs.trigger(jobs[i]?.jobId ?? '')),
    ...times(() => ofTenant.list()),
    ...times(() => deadLetters.redrive({ filter: {} })),
    ...times(() => node.jobs.list()),
    ...Array.from({ length: 4 }, () => node.jobs.createMany(thousands)),
  ])
  expect(counted.most()).toBeGreaterThan(MOST / 2)
  expect(counted.most()).toBeLessThanOrEqual(MOST)
  expect(Object.values(CONNECTIONS).reduce((sum, share) => sum + share, 0)).toBe(MOST)
})

test('a statement that may wait for rows is refused where it would take a connection from other work', async () => {
  const { schema, drop } = await createDatabase({ days: today() })
  const db = new Database({ connection: inject('postgres'), schema, logger: silentLogger })
  onTestFinished(async () => {
    await db.close()
    await drop()
  })
  const id = '019b76da-a800-7000-8000-00000000000a'
  for (const share of [db, db.vital, db.aside])
    await expect(lockTimer(share, 0, id)).rejects.toThrow(/lock_timer may wait/)
  await expect(db.vital.transaction((tx) => lockTimer(tx, 0, id))).rejects.toThrow(/lock_timer may wait/)
  expect(await db.vital.transaction((tx) => tx.setLockTimeout(100).then(() => lockTimer(tx, 0, id)))).toBeNull()
  expect(await db.callers.transactionOn(['a'], (tx) => lockTimer(tx, 0, id))).toBeNull()
})
