import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ResolvedSpec } from '../job/definition.ts'
import { compileSchedule } from './compile-schedule.ts'
import { whyNot } from './why-not.ts'

const at = (text: string) => Date.parse(text)
const weekdays: ResolvedSpec = { cron: '0 9 * * 1-5', timezone: 'UTC' }
const night: ResolvedSpec = { cron: '30 2 * * *', timezone: 'Europe/Berlin' }
const christmas: ResolvedSpec = {
  cron: '0 9 * * *',
  timezone: 'UTC',
  exclude: [{ cron: '* 8 * * *' }, { date: '2026-12-25' }, { days: [], weekend: [6, 0] }],
}

test.each<[ResolvedSpec, string, string, string]>([
  [weekdays, '2026-03-29T09:00:00Z', 'expression', '0 9 * * 1-5 does not fire on a Sunday'],
  [weekdays, '2026-03-30T10:30:00Z', 'expression', '0 9 * * 1-5 fires at 09:00, not at 10:30'],
  [weekdays, '2026-03-30T09:00:00.500Z', 'expression', 'whole seconds'],
  [{ ...weekdays, cron: '0 0 1,15 * *' }, '2026-03-29T00:00:00Z', 'expression', 'does not fire on day 29 of a month'],
  [{ ...weekdays, cron: '0 0 * 1-2 *' }, '2026-03-29T00:00:00Z', 'expression', 'does not fire in March'],
  [{ ...weekdays, cron: '0 0 * * 5#2' }, '2026-03-29T00:00:00Z', 'expression', 'does not fire on Sunday, 2026-03-29'],
  [{ ...weekdays, cron: '*/7 * * * *' }, '2026-03-29T00:01:00Z', 'expression', '*/7 * * * * does not fire at 00:01'],
  [
    { ...weekdays, cron: ['0 9 * * 1', '0 10 * * 2'] },
    '2026-03-29T09:00:00Z',
    'expression',
    'none of its 2 expressions',
  ],
  [christmas, '2026-12-25T09:00:00Z', 'exclude', 'exclude[1] leaves out 2026-12-25'],
  [christmas, '2026-12-26T09:00:00Z', 'exclude', 'exclude[2] leaves out 2026-12-26'],
  [
    { ...christmas, onExcluded: 'next_business_day' },
    '2026-12-25T09:00:00Z',
    'exclude',
    'exclude[1] leaves out 2026-12-25; it fires on 2026-12-28 at 09:00 instead',
  ],
  [
    { ...christmas, exclude: [{ fromAt: at('2026-12-25T00:00:00Z'), toAt: at('2026-12-25T12:00:00Z') }] },
    '2026-12-25T09:00:00Z',
    'exclude',
    'exclude[0] leaves out 09:00 on 2026-12-25',
  ],
  [
    night,
    '2026-03-29T01:30:00Z',
    'dst',
    'the clocks skip 02:30 on 2026-03-29 in Europe/Berlin; it fires at 03:00 instead',
  ],
  [{ ...night, dst: { gap: 'skip' } }, '2026-03-29T01:30:00Z', 'dst', 'it does not fire then'],
  [
    night,
    '2026-10-25T01:30:00Z',
    'dst',
    '02:30 comes twice on 2026-10-25 in Europe/Berlin; it fires only the first time',
  ],
  [{ ...night, dst: { overlap: 'last' } }, '2026-10-25T00:30:00Z', 'dst', 'it fires only the last time'],
  [{ ...weekdays, startAt: at('2026-06-01T00:00:00Z') }, '2026-03-30T09:00:00Z', 'start_at', '2026-06-01T00:00:00Z'],
  [{ ...weekdays, endAt: at('2026-03-30T09:00:00Z') }, '2026-03-30T09:00:00Z', 'end_at', '2026-03-30T09:00:00Z'],
  [
    { every: 'PT15M', timezone: 'UTC', anchor: at('2026-03-30T09:00:00Z'), count: 5 },
    '2026-03-30T10:15:00Z',
    'count',
    'its 5 times are used up: the last was at 2026-03-30T10:00:00Z',
  ],
  [
    { every: 'PT15M', timezone: 'UTC', anchor: at('2026-03-30T09:00:00Z') },
    '2026-03-30T10:20:00Z',
    'expression',
    'PT15M does not fire at 2026-03-30T10:20:00Z, but at 2026-03-30T10:15:00Z and 2026-03-30T10:30:00Z',
  ],
  [
    { every: 'PT15M', timezone: 'UTC', anchor: at('2026-03-30T09:00:00Z') },
    '2026-03-30T08:00:00Z',
    'start_at',
    'nothing fires before',
  ],
])('%j does not fire at %s: %s', (spec, instant, rule, message) => {
  const reason = whyNot(spec, at(instant))
  expect(reason?.rule).toBe(rule)
  expect(reason?.message).toContain(message)
})

test('there is a reason exactly where nothing fires', () => {
  const specs = [weekdays, night, christmas, { ...christmas, onExcluded: 'next_business_day' as const }]
  fc.assert(
    fc.property(fc.constantFrom(...specs), fc.integer({ min: 0, max: 366 * 96 }), (spec, quarters) => {
      const instant = at('2026-01-01T00:00:00Z') + quarters * 900_000
      const fires = compileSchedule(spec).next(instant - 1) === instant
      expect(whyNot(spec, instant) === null).toBe(fires)
    }),
    { numRuns: 300 },
  )
})
