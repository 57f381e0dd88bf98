import pg from 'pg'
import { expect, inject, onTestFinished } from 'vitest'
import { Backfills } from '../../src/backfills.ts'
import type { ActiveRun } from '../../src/executors/handlers/active-run.ts'
import { Jobs } from '../../src/jobs.ts'
import { Runs } from '../../src/runs.ts'
import type { Instant } from '../../src/runtime/clock.ts'
import { CLOCK_OF_CONNECTION } from '../../src/testing/manual-time.sql.ts'
import { startTestNode } from '../../src/testing/test-node.ts'
import { createDatabase, KIT_DAYS } from '../database.ts'

export const START = Date.UTC(2026, 0, 1)
export const MINUTE = 60_000
const SHARDS = [0, 1]
const HOLD = 4_711

export type Node = Awaited<ReturnType<typeof startNode>>

/** A node that owns every shard, whatever other nodes there are, and makes no step by itself. */
async function startNode(schema: string, seed: number, database: pg.ClientConfig) {
  const terms = { shards: SHARDS.length, start: START, leaseMs: 30_000, cancelGraceMs: 10_000 }
  const { engine, db, clock } = await startTestNode({ database, schema, seed, ...terms })
  onTestFinished(async () => {
    await engine.stop(0)
    await db.close()
  })
  engine.reader.own(SHARDS)
  engine.waking.own(SHARDS)
  engine.backfiller.own(SHARDS)
  /** In a turn of their own, and some when the row says so. */
  const handlersBegin = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    await engine.beginnings.drained()
  }
  return {
    engine,
    handlersBegin,
    db,
    clock,
    jobs: new Jobs(engine),
    runs: new Runs(engine),
    backfills: new Backfills(engine),
    readTimers: async () => {
      while ((await engine.reader.runOnce()).waitMs === 0);
    },
    promote: async () => (await engine.promoter.runOnce()).promoted,
    /** As if somebody had told it of the job. */
    backfill: async (jobId: string) => {
      engine.backfiller.tell(jobId)
      return (await engine.backfiller.runOnce()).changed
    },
    claim: async (queue: string) => {
      const queueId = await engine.registry.queueId(1, queue)
      await engine.handlers.claimer(queueId)?.runOnce()
      await handlersBegin()
    },
    handle: async (queue: string, handler: (run: ActiveRun) => unknown) =>
      engine.handle(await engine.registry.queueId(1, queue), handler, 10),
    reap: () => engine.reaper.reap(SHARDS, clock.now()),
  }
}

export async function setup() {
  const database = await createDatabase({ days: KIT_DAYS })
  onTestFinished(() => database.drop())
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client(database.connection)
    await client.connect()
    onTestFinished(() => client.end())
    return client
  }
  /** Ends when so many connections of this test wait for a lock. */
  const untilBlocked = (count = 1): Promise<void> =>
    expect.poll(() => blocked(database.pool, database.schema), { interval: 5 }).toBe(count)
  /**
   * Stops whoever does `event` to the row of this job, after its statement has begun and before it goes on to its next
   * row, until `release` is called.
   */
  const holdAt = async (event: 'insert' | 'update' | 'delete', table: string, jobId: string) => {
    const holder = await connect()
    await holder.query('select pg_advisory_lock($1)', [HOLD])
    const row = event === 'insert' ? 'new' : 'old'
    onTestFinished(async () => {
      await database.query('drop function if exists hold cascade')
    })
    await database.query(
      `create function hold() returns trigger language plpgsql as $$ begin
         perform pg_advisory_xact_lock_shared(${HOLD}); return ${event === 'delete' ? 'old' : 'new'}; end $$`,
    )
    await database.query(
      `create trigger hold before ${event} on ${table} for each row when (${row}.job_id = '${jobId}') execute function hold()`,
    )
    return {
      release: async () => {
        await holder.query('select pg_advisory_unlock($1)', [HOLD])
      },
    }
  }
  let seed = 0
  return {
    ...database,
    connect,
    untilBlocked,
    holdAt,
    /** The database's clock stands at this instant, whatever the clocks of nodes say. */
    databaseTime: async (now: Instant) => {
      await database.query(
        `create or replace function clock() returns double precision language sql volatile as $$ select ${now}::float8 $$`,
      )
      onTestFinished(() => database.query(CLOCK_OF_CONNECTION).then(() => {}))
    },
    startNode: (connection: pg.ClientConfig = inject('postgres')): Promise<Node> =>
      startNode(database.schema, ++seed, connection),
    /** (job, nominal time) of everything that is in flight or has ended for good. */
    occurrences: () =>
      database.query<{ job_id: string; nominal_at: Date }>(
        `select job_id, nominal_at from runs union all select job_id, nominal_at from attempts where final order by 1, 2`,
      ),
  }
}

async function blocked(pool: pg.Pool, schema: string): Promise<number> {
  const { rows } = await pool.query(
    `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and position($1 in query) > 0 and pid <> pg_backend_pid()`,
    [schema],
  )
  return rows[0].n
}
