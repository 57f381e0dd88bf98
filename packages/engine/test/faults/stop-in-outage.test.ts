import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { Belfry } from '../../src/index.ts'
import { PostgresServer } from '../chaos/postgres-server.ts'

const DRAIN_MS = 500
/** What a node still waits for the database after its grace time, and room for a slow machine. */
const FLUSH_MS = 5_000
const MARGIN_MS = 5_000
const HOLD = 4_712

test('a node whose database went away in the middle of a claim stops in time', async () => {
  const server = new PostgresServer()
  await server.start()
  onTestFinished(() => server.remove())
  const belfry = await Belfry.start({ database: server.connection, drainMs: DRAIN_MS })
  const { workers, jobs } = belfry.tenant({ tenantId: 1, tenant: 'default', actor: 'test' })
  const holder = new pg.Client(server.connection)
  holder.on('error', () => {})
  await holder.connect()
  await holder.query('select pg_advisory_lock($1)', [HOLD])
  await server.query(
    `create function belfry.hold() returns trigger language plpgsql as $$ begin
       perform pg_advisory_xact_lock_shared(${HOLD}); return new; end $$`,
  )
  await server.query(
    'create trigger hold before update on belfry.runs for each row when (new.state = 1) execute function belfry.hold()',
  )
  await jobs.create({ queue: 'work', payload: 1 })
  const call = { workerId: 'w', max: 1, waitMs: 30_000, leaseMs: 30_000, requestId: 'r' }
  const leasing = workers.lease('work', call, new AbortController().signal).catch(() => 'failed')
  const waiting = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'`
  await expect.poll(async () => (await server.query<{ n: number }>(waiting))[0]?.n).toBe(1)
  await server.kill()

  const began = performance.now()
  await belfry.stop()
  expect(performance.now() - began).toBeLessThan(DRAIN_MS + FLUSH_MS + MARGIN_MS)
  await leasing
})
