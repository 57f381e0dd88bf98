import { expect, test } from 'vitest'
import { type Overlap, SKIP_REASON } from '../../src/job/states.ts'
import { MINUTE, startKit } from './kit.ts'
import { EVERY_TEN, leave, minutesOf, setup } from './overlap-kit.ts'

test.each<[Overlap, string[], unknown[]]>([
  ['allow', ['20 running', '30 running', '40 running', '50 running'], []],
  ['skip', [], [[20, 50, 'overlap', 4]]],
  ['buffer_one', ['20 blocked'], [[30, 50, 'overlap', 3]]],
  ['buffer_latest', ['50 blocked'], [[20, 40, 'superseded', 3]]],
  ['buffer_all', ['20 blocked', '30 blocked', '40 blocked', '50 blocked'], []],
  ['cancel_running', ['50 blocked'], [[20, 40, 'superseded', 3]]],
])('catch-up of all times that meets a live run under %s', async (overlap, made, skipped) => {
  const t = await startKit()
  // Deaf, so that what is asked to stop is still alive.
  await t.kit.handle('reports', () => new Promise(() => {}))
  const catchUp = { policy: 'all', window: '1d' } as const
  const { jobId } = await t.kit.jobs.create({ ...EVERY_TEN, overlap, catchUp })
  await t.kit.pass(10 * MINUTE, leave)
  await t.fabricate(`update runs set lease_until = 'infinity', deadline = 'infinity'`)
  t.kit.clock.advance(42 * MINUTE)
  await t.kit.pulse()
  await t.kit.readTimers()
  await t.kit.promote()
  const runs = (await t.kit.runs.list({ jobId })).items.reverse()
  const shown = runs.map(({ nominalAt, status }) => `${minutesOf(nominalAt)} ${status.replace('ready', 'running')}`)
  expect(shown).toEqual(['10 running', ...made])
  const skips = (await t.skipsOf(jobId)).map(({ from, to, reason, count }) => [
    ...[minutesOf(from), Math.floor(minutesOf(to)), Object.keys(SKIP_REASON)[reason - 1], count],
  ])
  expect(skips).toEqual(skipped)
})

test.each<[Overlap, number[]]>([
  ['allow', [20, 30, 40, 50]],
  ['skip', [50]],
  ['buffer_one', [20, 30]],
  ['buffer_latest', [20, 50]],
  ['buffer_all', [20, 30, 40, 50]],
  ['cancel_running', [50]],
])('catch-up of all times that meets nothing under %s runs in order of time', async (overlap, ran) => {
  const t = await setup()
  const jobId = await t.create(overlap, { catchUp: { policy: 'all', window: '1d' } })
  await t.pass(10)
  await t.end()
  t.kit.clock.advance(42 * MINUTE)
  await t.kit.settle(leave)
  expect(t.atWork).toHaveLength(overlap === 'allow' ? 4 : 1)
  while (t.atWork.length > 0) await t.end()
  expect(t.started.slice(1)).toEqual(ran)
  // Every time is a run or a skip.
  const skipped = (await t.skipsOf(jobId)).reduce((sum, { count }) => sum + (count ?? 0), 0)
  expect(skipped + ran.length).toBe(4)
})
