import type pg from 'pg'
import { readNumber } from './database.ts'
import { startPostgresMeter } from './processor.ts'
import type { Measurement } from './workload.ts'

/** What a piece of work took, from the start of the meter until it was read. */
export interface Spent {
  /** Time of the processor that this process took, with all its threads, in microseconds. */
  nodeUs: number
  /** The same of PostgreSQL, with autovacuum and its other processes; null where `/proc` does not tell. */
  postgresUs: number | null
  walBytes: number
  /**
   * Statements that clients had executed in this database, with `begin` and `commit`; null where pg_stat_statements is
   * not loaded. What functions, triggers and autovacuum execute does not count, nor what the meter's client asks.
   */
  statements: number | null
}

/** Starts a meter. `client` belongs to the bench: from now on its own statements are not counted. */
export async function startMeter(client: pg.Client): Promise<() => Promise<Spent>> {
  const statements = await startStatementMeter(client)
  const walBytes = await startWalMeter(client)
  const postgresUs = await startPostgresMeter(client)
  const cpu = process.cpuUsage()
  return async () => {
    const { user, system } = process.cpuUsage(cpu)
    return {
      nodeUs: user + system,
      postgresUs: await postgresUs(),
      walBytes: await walBytes(),
      statements: await statements(),
    }
  }
}

/** What each of `runs` runs took. */
export function costs(name: string, spent: Spent, runs: number): Measurement[] {
  const cost = (what: string, value: number | null, unit: string): Measurement[] =>
    value === null ? [] : [{ name: `${name}_${what}`, value: value / runs, unit: `${unit}/run` }]
  return [
    ...cost('node_cpu', spent.nodeUs, 'µs'),
    ...cost('postgres_cpu', spent.postgresUs, 'µs'),
    ...cost('wal', spent.walBytes, 'bytes'),
    ...cost('statements', spent.statements, 'statements'),
  ]
}

async function startWalMeter(client: pg.Client): Promise<() => Promise<number>> {
  const { rows } = await client.query<{ lsn: string }>('select pg_current_wal_lsn() as lsn')
  const from = rows[0]?.lsn
  return () => readNumber(client, 'select pg_wal_lsn_diff(pg_current_wal_lsn(), $1)', [from])
}

/** The bench must be able to leave itself out of the count, which only a superuser may. */
const CAN_COUNT = `
  select count(*) from pg_settings join pg_roles on rolname = current_user
  where name = 'pg_stat_statements.track' and rolsuper`

const COUNTED = `
  select coalesce(sum(calls), 0) from pg_stat_statements
  where dbid = (select oid from pg_database where datname = current_database())`

async function startStatementMeter(client: pg.Client): Promise<() => Promise<number | null>> {
  if ((await readNumber(client, CAN_COUNT)) === 0) return async () => null
  await client.query(`set pg_stat_statements.track = 'none'`)
  await client.query('create extension if not exists pg_stat_statements')
  const before = await readNumber(client, COUNTED)
  return async () => (await readNumber(client, COUNTED)) - before
}
