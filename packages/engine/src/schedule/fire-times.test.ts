import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ResolvedSpec } from '../job/definition.ts'
import { compileSchedule } from './compile-schedule.ts'
import { FireTimes } from './fire-times.ts'
import { RememberedSchedule } from './remembered-schedule.ts'
import { type Schedule, scheduleId } from './schedule.ts'

const start = Date.UTC(2026, 0, 1)
const HOUR = 3_600_000

const specs: ResolvedSpec[] = [
  { cron: '* * * * *', timezone: 'UTC' },
  { cron: '*/7 9-17 * * 1-5', timezone: 'Asia/Kolkata' },
  { cron: '0 * * * *', timezone: 'UTC', startAt: start + 10 * HOUR, endAt: start + 40 * HOUR },
  { cron: '0 0 1 1 *', timezone: 'UTC', endAt: start + 1_000 * HOUR },
  { every: 'PT17M', timezone: 'UTC', anchor: start + 5 * HOUR, count: 60 },
  { every: 'P1D', timezone: 'Europe/Berlin', anchor: start },
  { cron: ['0 9 * * *', '*/45 1-3 * * *', '30 2 1 * *'], timezone: 'America/Havana' },
  { cron: '*/20 * * * *', timezone: 'UTC', exclude: [{ cron: '* 8-16 * * *' }, { date: '2026-01-02' }] },
  { cron: '30 2 * * *', timezone: 'UTC', exclude: [{ cron: '* 2 * * *' }] },
  {
    cron: ['0 9 * * *', '0 17 * * 6'],
    timezone: 'Europe/Berlin',
    exclude: [{ days: ['2026-01-01', '2026-01-06'], weekend: [0, 6] }],
    onExcluded: 'next_business_day',
  },
  {
    every: 'PT45M',
    timezone: 'Europe/Berlin',
    anchor: start,
    exclude: [
      { from: '2026-01-02', to: '2026-01-03' },
      { fromAt: start + 5 * HOUR, toAt: start + 9 * HOUR },
    ],
  },
]

/** Near one another, far apart, and on the boundaries where mistakes live. */
const instants = fc.oneof(
  fc.integer({ min: start - HOUR, max: start + 48 * HOUR }),
  fc.integer({ min: start - 1_000 * HOUR, max: start + 3_000 * HOUR }),
  fc
    .tuple(fc.integer({ min: 0, max: 48 * 60 }), fc.constantFrom(-1, 0, 1))
    .map(([minute, ms]) => start + minute * 60_000 + ms),
)
const questions = fc.oneof(
  { weight: 4, arbitrary: fc.record({ ask: fc.constant('next' as const), after: instants }) },
  { weight: 2, arbitrary: fc.record({ ask: fc.constant('follow' as const) }) },
  { weight: 2, arbitrary: fc.record({ ask: fc.constant('latest' as const), at: instants, after: instants }) },
  {
    weight: 1,
    arbitrary: fc.record({
      ask: fc.constant('count' as const),
      after: instants,
      until: instants,
      limit: fc.integer({ min: 0, max: 40 }),
    }),
  },
)

test('what is remembered equals what is computed, in whatever order it is asked', () => {
  fc.assert(
    fc.property(fc.constantFrom(...specs), fc.array(questions, { minLength: 1, maxLength: 60 }), (spec, asked) => {
      const plain = compileSchedule(spec)
      const remembered = new RememberedSchedule(compileSchedule(spec))
      let last = start
      for (const question of asked) {
        switch (question.ask) {
          case 'next':
            expect(remembered.next(question.after)).toBe(plain.next(question.after))
            last = question.after
            break
          case 'follow': {
            const next = plain.next(last)
            expect(remembered.next(last)).toBe(next)
            last = next ?? last
            break
          }
          case 'latest':
            expect(remembered.latest(question.at, question.after)).toBe(plain.latest(question.at, question.after))
            break
          case 'count': {
            const { after, until, limit } = question
            expect(remembered.count(after, until, limit)).toBe(plain.count(after, until, limit))
          }
        }
      }
    }),
    { numRuns: 300 },
  )
})

test('a long walk stays right when its beginning is forgotten', () => {
  const plain = compileSchedule({ cron: '* * * * *', timezone: 'UTC' })
  const remembered = new RememberedSchedule(plain)
  let last = start
  for (let i = 1; i <= 500; i++) {
    last = remembered.next(last) as number
    expect(last).toBe(start + i * 60_000)
  }
  expect(remembered.next(start)).toBe(start + 60_000)
  expect(remembered.next(last)).toBe(last + 60_000)
})

function counting(schedule: Schedule): Schedule & { asked: number } {
  const counter = {
    asked: 0,
    next: (after: number) => {
      counter.asked++
      return schedule.next(after)
    },
    latest: (atOrBefore: number, after: number) => {
      counter.asked++
      return schedule.latest(atOrBefore, after)
    },
    count: (after: number, until: number, limit: number) => {
      counter.asked++
      return schedule.count(after, until, limit)
    },
  }
  return counter
}

test('a storm over one schedule asks the calendar a few times, not once per job', () => {
  const inner = counting(compileSchedule({ cron: '*/5 * * * *', timezone: 'Europe/Berlin' }))
  const schedule = new RememberedSchedule(inner)
  for (let job = 0; job < 10_000; job++) {
    schedule.next(start + (job % 1_000))
    schedule.next(start + 300_000)
    schedule.latest(start + 3 * HOUR + (job % 500), start)
    schedule.count(start, start + 3 * HOUR, 1_000)
  }
  expect(inner.asked).toBeLessThan(12)
})

test('schedules are loaded once and the least used are forgotten first', () => {
  const fireTimes = new FireTimes({ maxSchedules: 100 })
  const loads = new Map<string, number>()
  const ask = (minute: number) => {
    const spec: ResolvedSpec = { every: 'PT1H', timezone: 'UTC', anchor: minute }
    const id = scheduleId(spec)
    const schedule = fireTimes.get(id, () => {
      loads.set(id, (loads.get(id) ?? 0) + 1)
      return spec
    })
    expect(schedule.next(minute)).toBe(minute + HOUR)
    return id
  }
  const favourite = ask(0)
  for (let i = 1; i <= 1_000; i++) {
    ask(i)
    ask(0)
  }
  expect(loads.get(favourite)).toBe(1)
  // Half of them at least are still there, and beyond their number nothing is.
  for (let i = 1_000; i > 951; i--) expect(loads.get(ask(i))).toBe(1)
  for (let i = 1; i <= 900; i += 100) expect(loads.get(ask(i))).toBe(2)
})

test('a schedule that cannot be understood is not kept', () => {
  const fireTimes = new FireTimes()
  expect(() => fireTimes.get('1', () => ({ cron: 'nonsense', timezone: 'UTC' }))).toThrow('5 fields')
  const schedule = fireTimes.get('1', () => ({ cron: '0 * * * *', timezone: 'UTC' }))
  expect(schedule.next(0)).toBe(HOUR)
})
