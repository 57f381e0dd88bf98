import { expect, test } from 'vitest'
import type { ResolvedExclusion, ResolvedSpec } from '../../src/job/definition.ts'
import { compileSchedule } from '../../src/schedule/compile-schedule.ts'
import { whyNot } from '../../src/schedule/why-not.ts'

/** Of CPU time, and generous: none of them takes more than a few dozen milliseconds. */
const MOST_MS = 3_000
const at = (text: string) => Date.parse(text)
const now = at('2026-11-15T12:00:00Z')
const whole: ResolvedExclusion = { cron: '* * * * *' }
const everyDay: ResolvedExclusion = { days: [], weekend: [0, 1, 2, 3, 4, 5, 6] }

function timed<T>(work: () => T): T {
  const before = process.cpuUsage()
  const result = work()
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(MOST_MS)
  return result
}

test.each(['0 0 30 2 *', '0 0 31 4,6,9,11 *', '0 0 30W 2 *', '0 0 L-30 2,4,6,9,11 *', '* * * 30 2 *'])(
  '%s is refused at once',
  (cron) => {
    expect(() => timed(() => compileSchedule({ cron, timezone: 'Europe/Berlin' }))).toThrow('never fires')
  },
)

test.each<[string, ResolvedSpec, string | null]>([
  [
    'leap days',
    { cron: '0 0 29 2 *', timezone: 'Europe/Berlin', startAt: at('2096-03-01T00:00:00Z') },
    '2104-02-28T23:00:00Z',
  ],
  [
    'leap days that are Mondays',
    { cron: '0 0 29 2 *', timezone: 'UTC', exclude: [{ cron: '* * * * 0,2-6' }] },
    '2044-02-29T00:00:00Z',
  ],
  ['a fifth Friday in February', { cron: '0 0 * 2 5#5', timezone: 'Asia/Gaza' }, '2036-02-28T22:00:00Z'],
  ['every minute but all', { cron: '* * * * *', timezone: 'Europe/Berlin', exclude: [whole] }, null],
  ['every second but all days', { cron: '* * * * * *', timezone: 'Europe/Berlin', exclude: [everyDay] }, null],
  [
    'even seconds but even seconds',
    { cron: '*/2 * * * * *', timezone: 'UTC', exclude: [{ cron: '*/2 * * * * *' }] },
    null,
  ],
  [
    'all but both halves of each hour',
    { cron: '* * * * * *', timezone: 'UTC', exclude: [{ cron: '0-29 * * * *' }, { cron: '30-59 * * * *' }] },
    null,
  ],
  [
    'all but all days of a week, one by one',
    {
      cron: ['* * * * *', '30 * * * * *'],
      timezone: 'America/Havana',
      exclude: Array.from({ length: 7 }, (_, weekday) => ({ cron: `* * * * ${weekday}` })),
    },
    null,
  ],
  [
    'a range of eight thousand years',
    { cron: '0 9 * * *', timezone: 'Europe/Berlin', exclude: [{ from: '0001-01-01', to: '9998-12-31' }] },
    '9999-01-01T08:00:00Z',
  ],
  [
    'a range until the end',
    { cron: '0 9 * * *', timezone: 'Europe/Berlin', exclude: [{ from: '0001-01-01', to: '9999-12-31' }] },
    null,
  ],
  [
    'instants until the end',
    { cron: '* * * * * *', timezone: 'UTC', exclude: [{ fromAt: 0, toAt: at('9999-12-31T23:59:58Z') }] },
    '9999-12-31T23:59:58Z',
  ],
  [
    'ten thousand days one by one',
    {
      cron: '*/5 * * * *',
      timezone: 'Europe/Berlin',
      exclude: [
        {
          days: Array.from({ length: 10_000 }, (_, day) => new Date(now + day * 86_400_000).toISOString().slice(0, 10)),
          weekend: [0],
        },
      ],
    },
    '2054-04-01T22:00:00Z',
  ],
  [
    'a hundred expressions',
    {
      cron: Array.from({ length: 100 }, (_, n) => `${n % 60} ${n % 24} ${1 + (n % 28)} * ${n % 7}`),
      timezone: 'Asia/Gaza',
    },
    '2026-11-15T12:14:00Z',
  ],
  ['every second but all', { every: 'PT1S', timezone: 'Europe/Berlin', anchor: 0, exclude: [whole] }, null],
  [
    'every other second but those',
    { every: 'PT2S', timezone: 'UTC', anchor: 0, exclude: [{ cron: '*/2 * * * * *' }] },
    null,
  ],
  [
    'the last year',
    { cron: '0 0 31 12 *', timezone: 'UTC', startAt: at('9999-01-01T00:00:00Z') },
    '9999-12-31T00:00:00Z',
  ],
  ['what begins after the end', { cron: '0 0 1 1 *', timezone: 'UTC', startAt: at('9999-06-01T00:00:00Z') }, null],
  [
    'an interval of a century',
    { every: 'P100Y', timezone: 'Europe/Berlin', anchor: at('2026-01-01T00:00:00Z') },
    '2126-01-01T00:00:00Z',
  ],
])('%s: every question is answered within a bound', (_name, spec, next) => {
  const schedule = timed(() => compileSchedule(spec))
  expect(timed(() => schedule.next(now))).toBe(next === null ? null : at(next))
  timed(() => schedule.latest(now, 0))
  timed(() => schedule.latest(at('9999-12-31T23:59:59Z'), 0))
  timed(() => schedule.count(now, now + 86_400_000, 1_000))
  timed(() => whyNot(spec, now))
  for (const edge of [at('0001-01-01T00:00:00Z'), -8.64e15, 8.64e15, Number.MAX_SAFE_INTEGER]) {
    timed(() => schedule.next(edge))
    timed(() => schedule.latest(edge, edge - 1_000))
    timed(() => schedule.latest(edge, 0))
  }
})

test.each<[string, ResolvedSpec, string]>([
  [
    'too many times a day',
    { cron: '*/30 * * * *', timezone: 'UTC', exclude: [{ date: '2026-12-25' }], onExcluded: 'next_business_day' },
    'at most 24 times of day',
  ],
  [
    'too many times a day, of an interval',
    { every: 'PT30M', timezone: 'UTC', anchor: 0, exclude: [{ date: '2026-12-25' }], onExcluded: 'next_business_day' },
    'at most 24 times of day',
  ],
  [
    'no business day for over a year',
    {
      cron: '0 9 * * *',
      timezone: 'UTC',
      exclude: [{ from: '2026-01-01', to: '2026-12-31' }, { date: '2027-01-01' }, { days: [], weekend: [0, 6] }],
      onExcluded: 'next_business_day',
    },
    'more than 366 days in a row',
  ],
  [
    'no business day at all',
    { cron: '0 9 * * *', timezone: 'UTC', exclude: [everyDay], onExcluded: 'next_business_day' },
    'more than 366 days in a row',
  ],
  [
    'days backwards',
    { cron: '0 9 * * *', timezone: 'UTC', exclude: [{ from: '2026-12-25', to: '2026-12-24' }] },
    'backwards',
  ],
  ['no such day', { cron: '0 9 * * *', timezone: 'UTC', exclude: [{ date: '2026-02-30' }] }, 'does not exist'],
  [
    'instants backwards',
    { cron: '0 9 * * *', timezone: 'UTC', exclude: [{ fromAt: 5, toAt: 5 }] },
    'end after it begins',
  ],
  ['no expression', { cron: [], timezone: 'UTC' }, 'at least one'],
])('%s: refused with its reason', (_name, spec, message) => {
  expect(() => timed(() => compileSchedule(spec))).toThrow(message)
})
