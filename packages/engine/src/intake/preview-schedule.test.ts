import { expect, test } from 'vitest'
import { type Clock, ManualClock, SystemClock } from '../runtime/clock.ts'
import { formatDay } from '../schedule/calendar-day.ts'
import { type PreviewInput, previewSchedule } from './preview-schedule.ts'
import type { CalendarMap } from './resolve-when.ts'

const NOW = Date.UTC(2026, 10, 15)

interface Around {
  clock?: Clock
  calendars?: CalendarMap
}

function preview(input: PreviewInput, { clock = new ManualClock(NOW), calendars = new Map() }: Around = {}) {
  return previewSchedule({ clock, calendars: { read: async () => calendars } }, 1, input)
}

test.each<[input: PreviewInput, times: number]>([
  [{ every: 'P1Y', timezone: 'America/New_York' }, 101],
  [{ cron: '0 9 29 2 *', timezone: 'Europe/Berlin' }, 24],
  [{ cron: '0 9 1 1 *', from: '2100-01-01T00:00:00Z' }, 101],
])('a preview of %j ends 100 years ahead, and says so', async (input, times) => {
  const answer = await preview({ ...input, count: 1_000 })
  expect(answer.times).toHaveLength(times)
  expect(answer.note).toContain('within 100 years')
})

test('a schedule that is over needs no note', async () => {
  expect(await preview({ every: 'R3/PT1H', count: 5 })).not.toHaveProperty('note')
  expect(await preview({ cron: '@daily', maxRuns: 3, count: 5 })).not.toHaveProperty('note')
  expect(await preview({ cron: '@daily', count: 1_000 })).not.toHaveProperty('note')
})

/** Every look at it takes a while. */
function slowClock(lookMs: number): Clock {
  const clock = new ManualClock(NOW)
  const now = () => {
    clock.advance(lookMs)
    return clock.now()
  }
  return { now, isTrusted: true, observe: () => {}, timer: (ms, wake) => clock.timer(ms, wake) }
}

test('a preview that takes too long answers what it has', async () => {
  const answer = await preview({ cron: '* * * * *', count: 1_000 }, { clock: slowClock(30) })
  expect(answer.times.length).toBeGreaterThan(10)
  expect(answer.times.length).toBeLessThan(50)
  expect(answer.note).toContain('takes too long')
})

test('others have their turn during a preview', async () => {
  const exclude = Array.from({ length: 100 }, (_, i) => ({ cron: `${i % 60} ${i % 24} ${(i % 28) + 1} * *` }))
  let turns = 0
  let isDone = false
  const count = () => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const clock = new SystemClock()
  const answer = await preview({ cron: '* * * * * *', count: 1_000, exclude }, { clock })
  isDone = true
  expect(answer.times.length).toBeGreaterThan(0)
  expect(turns).toBeGreaterThan(5)
})

test('a job cannot leave out more than 20,000 days', async () => {
  const days = Array.from({ length: 5_000 }, (_, i) => formatDay(20_000 + 2 * i))
  const calendars = new Map(['a', 'b', 'c', 'd', 'e'].map((name) => [name, { days, weekend: [] }]))
  const exclude = (names: string) => [...names].map((calendar) => ({ calendar }))
  await expect(preview({ cron: '@daily', exclude: exclude('abcde') }, { calendars })).rejects.toThrow(
    'exclude: leaves out 25000 days, and at most 20000 are possible',
  )
  expect((await preview({ cron: '@daily', exclude: exclude('abcd') }, { calendars })).times).toHaveLength(5)
})

test('an exclusion with seconds leaves out seconds, also second 0', async () => {
  const { times } = await preview({ cron: '*/20 * * * * *', exclude: [{ cron: '0 * * * * *' }], count: 3 })
  expect(times.map(({ utc }) => utc.slice(11))).toEqual(['00:00:20Z', '00:00:40Z', '00:01:20Z'])
})
