import { expect, test } from 'vitest'
import type { JobInput } from '../../src/intake/job-input.ts'
import { runIdOf } from '../../src/job/ids.ts'
import { SKIP_REASON } from '../../src/job/states.ts'
import { at, HOUR, held, MINUTE, record, START, startKit } from './kit.ts'

const debounced = (payload: unknown, delay: string): JobInput => ({
  ...{ queue: 'work', payload, delay },
  unique: { key: 'k', onConflict: 'replace' },
})
const superseded = (ms: number) => ({ from: at(ms), to: at(ms + 1), reason: SKIP_REASON.superseded, count: 1 })

/** A one-off that was triggered at 0 and is due in a minute; what is asked for replaces it. */
async function setup() {
  const t = await startKit()
  const { jobId } = await t.kit.jobs.create(debounced('old', '1m'))
  const { runId } = await t.kit.jobs.trigger(jobId)
  const replace = async (delay: string) => {
    const replaced = await t.kit.jobs.create(debounced('new', delay))
    expect(replaced).toMatchObject({ jobId, replaced: true })
  }
  const promote = async () => {
    await t.kit.readTimers()
    await t.kit.promote()
  }
  const runs = async () =>
    (await t.kit.runs.list({ jobId })).items.map(({ id, status, cause }) => [id, status, cause]).reverse()
  return { ...t, jobId, runId, replace, promote, runs }
}

test('a triggered run and a run of its own time both wait: replacing leaves the first and takes the second back, with a skip', async () => {
  const t = await setup()
  t.kit.clock.advance(MINUTE)
  await t.promote()
  expect(await t.runs()).toHaveLength(2)
  await t.replace('1h')
  expect(await t.runs()).toEqual([[t.runId, 'ready', 'trigger']])
  expect(await t.skipsOf(t.jobId)).toEqual([superseded(MINUTE)])
  const seen = await record(t.kit, 'work')
  await t.kit.pass(2 * HOUR)
  expect(seen.map(({ payload }) => payload)).toEqual(['new', 'new'])
  expect(await t.runs()).toEqual([
    [t.runId, 'succeeded', 'trigger'],
    [runIdOf(t.jobId, START + MINUTE + HOUR), 'succeeded', 'create'],
  ])
})

test('a time that is still ahead is a skip when another takes its place, also while a triggered run is under way', async () => {
  const t = await setup()
  const { gate, letGo } = held()
  await record(t.kit, 'work', () => gate)
  await t.kit.settle({ running: 'leave' })
  await t.replace('1h')
  expect(await t.skipsOf(t.jobId)).toEqual([superseded(MINUTE)])
  const { jobs } = await t.kit.tenant('default')
  expect((await jobs.explain(t.jobId, at(MINUTE).toISOString())).sentence).toContain('another time took its place')
  letGo()
  await t.kit.pass(2 * HOUR)
  expect(await t.runs()).toEqual([
    [t.runId, 'succeeded', 'trigger'],
    [runIdOf(t.jobId, START + HOUR), 'succeeded', 'create'],
  ])
})

test('a job that is replaced for the same time has that time, and no skip', async () => {
  const t = await setup()
  await t.replace('1m')
  expect(await t.skipsOf(t.jobId)).toEqual([])
})

test('a job whose own run has started is not replaced because a triggered one has not', async () => {
  const t = await setup()
  t.kit.clock.advance(MINUTE)
  await t.promote()
  await t.fabricate(`update runs set state = 2, attempt = 1, due_at = due_at + interval '1 h' where cause = 1`)
  const before = await t.runs()
  const refused = { code: 'unique_conflict', status: 409 }
  await expect(t.kit.jobs.create(debounced('new', '1h'))).rejects.toMatchObject(refused)
  expect(await t.runs()).toEqual(before)
})

test('a time of its own that is that of a triggered run makes a run too', async () => {
  const t = await setup()
  await t.replace('0s')
  await t.kit.jobs.trigger(t.jobId)
  await record(t.kit, 'work')
  await t.kit.pass(MINUTE)
  expect((await t.runs()).map(([, status, cause]) => [status, cause]).sort()).toEqual([
    ['succeeded', 'create'],
    ['succeeded', 'trigger'],
    ['succeeded', 'trigger'],
  ])
})
