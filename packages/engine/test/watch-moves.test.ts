import { expect, onTestFinished, test } from 'vitest'
import { newJobId } from '../src/job/ids.ts'
import { RUN_STATE } from '../src/job/states.ts'
import { silentLogger } from '../src/runtime/logger.ts'
import { systemRandom } from '../src/runtime/random.ts'
import { migrate } from '../src/store/migrator.ts'
import { createDatabase } from './database.ts'
import { countedMoves, prepareToCount, watchMoves } from './watch-moves.ts'

const NOW = Date.UTC(2026, 0, 1)
const JOB_ID = newJobId(1, NOW, systemRandom)

/** A schema whose moves are counted apart from those of the other tests. */
async function setup() {
  const database = await createDatabase({ migrations: [] })
  onTestFinished(() => database.drop())
  const counts = `${database.schema}_counts`
  onTestFinished(async () => {
    await database.query(`drop schema ${counts} cascade`)
  })
  const client = await database.pool.connect()
  await migrate(client, { schema: database.schema, logger: silentLogger })
  await prepareToCount(client, counts)
  await client.query('create table attempts_all partition of attempts default')
  await watchMoves(client, database.schema, counts)
  onTestFinished(() => client.release())
  const made = async () => {
    const { rows } = await client.query<{ name: string }>(
      'select sequencename as name from pg_sequences where schemaname = $1 and last_value is not null',
      [counts],
    )
    return rows.map(({ name }) => name).sort()
  }
  const insert = ({ state = 'ready' as keyof typeof RUN_STATE, attempt = 0 } = {}) =>
    database.query(
      `insert into runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause,
         delivery, one_off, cancel_requested, has_dependents)
       values ($1, $1, 0, $2, 1, 1, 1, $3, 0, 1000, 1, $4, 5, 1, 0, true, false, false)`,
      [new Date(NOW), JOB_ID, attempt, RUN_STATE[state]],
    )
  /** Ends what there is, as the program does: it stands in history. */
  const end = () =>
    database.query(
      `with gone as (delete from runs returning *)
       insert into attempts (nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
       select nominal_at, due_at, due_at, job_id, tenant_id, queue_id, job_version, 0, shard, 3, cause, false, true from gone`,
    )
  return { ...database, insert, end, made, counted: () => countedMoves(client, counts) }
}

const LEASE = `state = 1, attempt = attempt + 1, holder = 9, leased_at = due_at, lease_until = due_at, deadline = due_at`
const END_LEASE = 'holder = null, leased_at = null, lease_until = null, deadline = null'

test('the moves of a run are counted, and what changes in its place is none', async () => {
  const t = await setup()
  await t.insert()
  await t.query(`update runs set ${LEASE}`)
  await t.query('update runs set priority = 6')
  await t.query(`update runs set lease_until = lease_until - interval '1 second'`)
  await t.query(`update runs set ${END_LEASE}, state = ${RUN_STATE.waiting}`)
  await t.query(`update runs set state = ${RUN_STATE.ready}`)
  await t.end()
  const moves = ['absent → ready', 'ready → leased', 'leased → leased', 'leased → waiting', 'waiting → ready']
  expect(await t.made()).toEqual([...moves, 'ready → finished'].sort())
  const { refused, unmade } = await t.counted()
  expect(refused).toEqual([])
  expect(unmade).toContain('blocked → finished')
  expect(unmade).not.toContain('waiting → ready')
})

test('a run that goes and leaves nothing in history is absent again, and one that stands there is opened again', async () => {
  const t = await setup()
  await t.insert()
  await t.query('delete from runs')
  await t.insert({ state: 'dependent' })
  await t.end()
  await t.insert({ state: 'dependent' })
  await t.end()
  await t.insert({ attempt: 1 })
  const born = ['absent → dependent', 'absent → ready', 'dependent → finished', 'finished → dependent']
  expect(await t.made()).toEqual([...born, 'finished → ready', 'ready → absent'].sort())
})

const FORBIDDEN = [
  [`state = ${RUN_STATE.dependent}`, 'ready → dependent'],
  ['holder = 1', 'a lease has holder, times and deadline, and nothing else has'],
  [LEASE.replace('deadline = due_at', "deadline = due_at - interval '1 second'"), 'a lease ends by its deadline'],
  ['attempt = 1', 'the attempt goes up with a lease, and only then'],
  [LEASE.replace('attempt + 1', 'attempt'), 'the attempt goes up with a lease, and only then'],
  ['failures = 1', 'there are not more failures than attempts'],
  ['failures = -1', 'failures never fall'],
  ['cancel_requested = true', 'it is asked to stop while it is leased, and for good'],
  ['gate_key = 1', 'only a leased or a waiting run stands at a gate'],
  ['limit_key = 1', 'it is claimed with those that have keys if it has one'],
  ['tenant_id = 2', 'it stays the run that it is'],
] as const

test('a move that is not listed and a row that breaks a rule are refused, and known of afterwards', async () => {
  const t = await setup()
  await t.insert()
  for (const [change] of FORBIDDEN)
    await expect(t.query(`update runs set ${change}`), change).rejects.toThrow(/does not list|breaks the rule/)
  await t.query(`update runs set ${LEASE}`)
  await expect(t.query('update runs set holder = 10')).rejects.toThrow('a lease keeps its holder, start and deadline')
  const refusals = [...FORBIDDEN.map(([, refusal]) => refusal), 'a lease keeps its holder, start and deadline']
  expect((await t.counted()).refused).toEqual([...new Set(refusals)].sort())
})

test('what a test fabricates is neither refused nor counted', async () => {
  const t = await setup()
  await t.fabricate(`update runs set state = ${RUN_STATE.dependent}, holder = 7`)
  await t.fabricate('delete from runs')
  expect(await t.made()).toEqual([])
})
