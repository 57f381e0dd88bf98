import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { Partitioner } from '../../src/history/partitioner.ts'
import { ManualClock } from '../../src/runtime/clock.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { Database } from '../../src/store/database.ts'
import { readerConfig } from '../../src/store/reader.ts'
import { ensureReaderRole, READER_ROLE } from '../../src/store/reader-role.ts'
import { allStatements, renderFor, type Statement } from '../../src/store/statement.ts'
import { START } from '../behaviour/kit.ts'
import { createDatabase } from '../database.ts'

const LOOKUP = fileURLToPath(new URL('../../src/lookup', import.meta.url))
const ROWS = 30_000

/** By which index each look-up may find rows of the tables that grow. */
const BY: Record<string, RegExp[]> = {
  get_job: [/jobs_pkey/, /specs\w*_pkey/, /timers_pkey/, /runs_pkey/, /dead_letters_pkey/],
  list_jobs: [/jobs_by_tenant|jobs_pkey/, /specs\w*tenant_id_job_id_idx|specs\w*_pkey/, /runs_pkey/],
  get_run: [/runs_pkey/, /dead_letters_pkey/, /timers_pkey/],
  list_runs: [/runs_by_tenant|runs_pkey/],
  list_runs_of_default: [/runs_pkey/],
  list_runs_of_job: [/runs_pkey/],
  list_dead_letters: [/dead_letters_by_tenant/],
  get_dead_letter: [/dead_letters_pkey/],
  job_belongs_to_tenant: [/jobs_pkey|jobs_by_tenant/],
  run_belongs_to_tenant: [/runs_pkey|runs_by_tenant/, /dead_letters_pkey/],
  queue_depths: [/runs_by_tenant/],
  read_scale: [/using runs_ready /, /using runs_ready /, /using runs_leased /, /attempts\w*tenant_id_finished_at_idx/],
  stats_of_runs: [/runs_by_tenant/],
  stats_of_attempts: [/attempts\w*tenant_id_finished_at_idx/],
  stats_of_dead_letters: [/dead_letters_by_tenant/],
  stats_of_next_due: [/timers_by_tenant/],
  stats_of_next_due_of_default: [/timers_by_due/],
}
/** Tables whose rows are few enough to be read whole. */
const SMALL = /^(queues|tenants)/

async function setup() {
  const database = await createDatabase({ fresh: true })
  onTestFinished(() => database.drop())
  const db = new Database({
    ...{ connection: inject('postgres'), schema: database.schema, logger: silentLogger },
  })
  onTestFinished(() => db.close())
  await new Partitioner({ db, clock: new ManualClock(START), logger: silentLogger }).ensure()
  const client = await database.pool.connect()
  expect(await ensureReaderRole(client, database.schema)).toBeNull()
  client.release()
  const id = `(lpad(to_hex(${START} + n), 12, '0') || '7' || lpad(to_hex(n % 4), 3, '0') || '8' || substr(md5(n::text), 1, 15))::uuid`
  const rows = `generate_series(1, ${ROWS}) n`
  const at = `to_timestamp(${START} / 1000.0 + n / 1000.0)`
  await database.fabricate(
    `insert into runs select ${at}, ${at}, n, null, null, null, null, ${id}, n % 50 + 1, 1, 1, 0, 0, 1000, n % 4, 0, 5, 0, 0, true, false, false from ${rows}`,
  )
  await database.query(
    `insert into specs (updated_at, job_id, tenant_id, version, shard, definition) select ${at}, ${id}, n % 50 + 1, 1, n % 4, '{"queue":"q"}' from ${rows}`,
  )
  await database.query(
    `insert into jobs (updated_at, id, tenant_id, version, shard, status, definition) select ${at}, ${id}, n % 50 + 1, 1, n % 4, 0, '{"queue":"q"}' from ${rows}`,
  )
  await database.query(
    `insert into attempts (nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
     select ${at}, ${at}, ${at}, ${id}, n % 50 + 1, 1, 1, 1, n % 4, 1, 0, true, true from ${rows}`,
  )
  await database.query(
    `insert into dead_letters (nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority, cause, delivery, one_off)
     select ${at}, ${at}, ${at}, ${id}, n % 50 + 1, 1, 1, 1, 1, 1000, n % 4, 5, 0, 0, true from ${rows}`,
  )
  // As the reader's connections are set up, but by hand: what a statement is bound with must not make its plan.
  const asTenant = new pg.Client(readerConfig(inject('postgres'), 'fresh reads'))
  await asTenant.connect()
  onTestFinished(() => asTenant.end())
  await asTenant.query(`set role ${READER_ROLE}`)
  await asTenant.query(`select set_config('belfry.tenant', '7', false)`)
  const plan = async (statement: Statement): Promise<string> => {
    const { rows } = await asTenant.query(`explain (generic_plan) ${renderFor(database.schema, statement)}`)
    return rows.map((row) => Object.values(row)[0]).join('\n')
  }
  return { ...database, plan }
}

/** Before 16 PostgreSQL does not show plans that are made without the values of parameters. */
test.skipIf(inject('serverMajor') < 16)(
  'look-ups under row-level security find rows by an index, with fresh statistics and with none',
  async () => {
    const t = await setup()
    for (const file of readdirSync(LOOKUP)) if (file.endsWith('.sql.ts')) await import(`${LOOKUP}/${file}`)
    for (const statistics of ['none', 'fresh']) {
      if (statistics === 'fresh') await t.query('analyze')
      for (const [name, indexes] of Object.entries(BY)) {
        const statement = allStatements().find((one) => one.name === name) as Statement
        const plan = await t.plan(statement)
        const scans = [
          ...plan.matchAll(/(Seq Scan|Index (?:Only )?Scan(?: Backward)? using (\w+)|Bitmap Heap Scan) on (\w+)/g),
        ]
        const hot = scans.filter(
          ([, , , table]) =>
            /^(runs|jobs|specs|attempts|dead_letters|timers)/.test(table as string) && !SMALL.test(table as string),
        )
        expect(hot.length, `${name}\n${plan}`).toBeGreaterThan(0)
        for (const [whole, , index] of hot) expect(index, `${name}, ${statistics}: ${whole}\n${plan}`).toBeDefined()
        for (const pattern of indexes) expect(plan, `${name}, ${statistics}`).toMatch(pattern)
      }
    }
  },
)
