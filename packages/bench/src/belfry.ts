import type { Belfry, BelfryOptions } from '@belfry/engine'
import type pg from 'pg'
import { readNumber, waitUntilReached } from './database.ts'
import { mustEqual, type Setting } from './workload.ts'

/** The steps that Belfry's workloads share: start, create, wait for history, check it. */

/** Enough for three lanes of full batches: handlers that do nothing must not be what limits. */
export const CONCURRENCY = 3_000
export const DEADLINE_MS = 300_000
const SCHEMA = 'belfry'
const CHUNK = 5_000
/** Two in flight keep both the node and the database busy. */
const CHUNKS_IN_FLIGHT = 2

export type JobInput = Parameters<Belfry['jobs']['createMany']>[0][number]

export async function startBelfry(
  { databaseUrl, shards }: Pick<Setting, 'databaseUrl' | 'shards'>,
  options: BelfryOptions = {},
): Promise<Belfry> {
  const { Belfry } = await import('@belfry/engine')
  return Belfry.start({ database: databaseUrl, schema: SCHEMA, shards, ...options })
}

/** Creates `count` jobs in chunks and says how many a second that was. */
export async function createAll(belfry: Belfry, count: number, jobAt: (index: number) => JobInput): Promise<number> {
  const startedAt = performance.now()
  let next = 0
  const caller = async () => {
    while (next < count) {
      const from = next
      next = Math.min(count, from + CHUNK)
      await belfry.jobs.createMany(Array.from({ length: next - from }, (_, index) => jobAt(from + index)))
    }
  }
  await Promise.all(Array.from({ length: CHUNKS_IN_FLIGHT }, caller))
  return count / ((performance.now() - startedAt) / 1_000)
}

/** The statistics that autovacuum would gather within a minute of a load, gathered now, as for the floors. */
export async function settle(client: pg.Client): Promise<void> {
  await client.query('analyze')
}

export function table(name: 'attempts' | 'runs' | 'timers' | 'jobs'): string {
  return `${SCHEMA}.${name}`
}

export function countAttempts(client: pg.Client): Promise<number> {
  return readNumber(client, `select count(*) from ${table('attempts')}`)
}

/** Handlers that ended are not history yet: the clock stops when the last attempt can be read. */
export function waitForHistory(client: pg.Client, expected: number): Promise<void> {
  return waitUntilReached(() => countAttempts(client), expected, {
    what: 'Belfry, attempts in history',
    deadlineMs: 60_000,
  })
}

/** Nothing lost, nothing doubled, nothing left over. */
export async function checkHistory(client: pg.Client, expected: number): Promise<void> {
  mustEqual('Belfry, attempts in history', await countAttempts(client), expected)
  const distinct = `select count(*) from (select distinct shard, job_id, nominal_at from ${table('attempts')}) r`
  mustEqual('Belfry, distinct runs in history', await readNumber(client, distinct), expected)
  mustEqual('Belfry, runs left over', await readNumber(client, `select count(*) from ${table('runs')}`), 0)
}
