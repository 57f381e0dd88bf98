import { expect, onTestFinished, test } from 'vitest'
import type { Answer } from './api.ts'
import { startWithWorkers } from './worker-calls.ts'

interface Problem {
  type: string
}

/** A worker with two runs of one job each, and a database that takes no more writes of runs, jobs and timers. */
async function setup() {
  const t = await startWithWorkers()
  const worker = t.worker('w1')
  const call = t.as(t.key)
  const [one, other] = [await t.leased(worker), await t.leased(worker)]
  const allow = () => t.query('drop function if exists refuse cascade')
  onTestFinished(() => void allow())
  await t.query(`create function refuse() returns trigger language plpgsql as $$ begin
    raise exception 'could not extend file: no space left on device' using errcode = 'disk_full'; end $$`)
  for (const table of ['runs', 'jobs', 'timers'])
    await t.query(
      `create trigger refuse before insert or update or delete on ${table} for each row execute function refuse()`,
    )
  return { ...t, worker, call, one, other, allow }
}

const UNAVAILABLE = { status: 503, body: { type: 'urn:belfry:problem:database_unavailable' } }

test('while the database refuses writes, heartbeats and changes hear 503, and completions wait until it takes them', async () => {
  const t = await setup()
  const { token } = t.one
  expect(await t.call('POST /v1/leases/heartbeat', { workerId: 'w1', leases: [{ token }] })).toMatchObject(UNAVAILABLE)
  const changes = await Promise.all([
    t.read<Problem>(`POST /v1/jobs/${t.one.jobId}/cancel`, {}),
    t.read<Problem>(`POST /v1/runs/${t.one.runId}/cancel`, {}),
    t.read<Problem>('POST /v1/jobs', { queue: 'mails', name: 'nightly', every: '1h' }),
    t.read<Problem>('POST /v1/jobs', { queue: 'mails', payload: 1 }),
  ])
  expect(changes).toMatchObject(changes.map((_: Answer<Problem>) => UNAVAILABLE))
  const results = [
    { token, status: 'succeeded' },
    { token: t.other.token, status: 'failed', error: { message: 'no', class: 'handler_error', retryable: false } },
  ]
  const completed = t.worker.complete(results)
  await t.allow()
  expect((await completed).map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
  expect(await t.query('select number, outcome from attempts order by outcome')).toHaveLength(2)
  expect(t.errors).toEqual([])
})
