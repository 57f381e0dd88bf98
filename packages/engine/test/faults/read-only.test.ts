import { expect, onTestFinished, test } from 'vitest'
import { pause } from '../../src/runtime/pause.ts'
import { audit } from '../chaos/audit.ts'
import { type BelfryNode, startNodes } from '../chaos/fleet.ts'
import { Ledger } from '../chaos/ledger.ts'
import { PostgresServer } from '../chaos/postgres-server.ts'

/** As long as a failover, or as it takes to make room on a disk. */
const READ_ONLY_MS = 6_000
const LEASE_MS = 20_000
const END_OTHERS =
  'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null'

/** A session keeps what its database was like when it began: those that are open are ended, and new ones find it changed. */
async function setup() {
  const server = new PostgresServer()
  await server.start()
  onTestFinished(() => server.remove())
  const ledger = await Ledger.open()
  const forbidWrites = () =>
    server.query(`do $$ begin
       execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$; ${END_OTHERS}`)
  const allowWrites = () =>
    server.query(`begin read write; do $$ begin
       execute format('alter database %I reset default_transaction_read_only', current_database()); end $$; commit`)
  return { server, ledger, query: server.query.bind(server), forbidWrites, allowWrites }
}

test('six seconds of a database that refuses writes lose no end, and nothing is performed twice or lost', async () => {
  const t = await setup()
  const options = { database: t.server.connection, ledger: t.ledger, leaseMs: LEASE_MS, queues: { work: 100 } }
  const [one, other] = (await startNodes(2, options)) as [BelfryNode, BelfryNode]
  const jobs = Array.from({ length: 600 }, (_, i) => ({
    ...{ queue: 'work', payload: { ms: 900 }, retry: { maxAttempts: 1 } },
    ...(i % 3 === 0 ? { delivery: 'at_most_once' } : {}),
  }))
  const created = await one.createMany(jobs)
  await expect.poll(() => t.ledger.count()).toBeGreaterThan(100)

  await t.forbidWrites()
  const beganAt = performance.now()
  const [job] = created
  const answers = await Promise.allSettled(
    [
      other.call('jobs.create', { queue: 'never-seen' }),
      other.call('jobs.create', { queue: 'work', idempotencyKey: 'key' }),
      other.call('jobs.cancel', job?.jobId),
      other.call('jobs.pause', job?.jobId),
      other.call('jobs.trigger', job?.jobId),
      other.call('runs.cancel', `${job?.jobId}.1`),
    ].map((answer) => Promise.race([answer, pause(READ_ONLY_MS)])),
  )
  await pause(READ_ONLY_MS - (performance.now() - beganAt))
  await t.allowWrites()
  for (const answer of answers)
    if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'database_unavailable' })
  expect(answers.filter(({ status }) => status === 'rejected').length).toBeGreaterThanOrEqual(4)

  const left = () => t.query('select from belfry.runs')
  await expect.poll(left).toHaveLength(0)
  const ids = new Set(created.map(({ jobId }) => jobId))
  const executions = await t.ledger.executions()
  expect(await audit(t.query, 'belfry', executions)).toEqual([])
  expect(executions.filter(({ job_id }) => ids.has(job_id))).toHaveLength(jobs.length)
  const outcomes = await t.query(
    'select outcome, count(*)::int from belfry.attempts where job_id = any($1) group by 1',
    [[...ids]],
  )
  expect(outcomes).toEqual([{ outcome: 1, count: jobs.length }])
  expect(await t.query('select from belfry.dead_letters')).toEqual([])
  expect([...one.errors, ...other.errors]).toEqual([])
})
