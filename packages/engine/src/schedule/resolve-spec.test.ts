import { expect, test } from 'vitest'
import type { Calendar, ScheduleSpec } from '../job/definition.ts'
import { compileSchedule } from './compile-schedule.ts'
import { canonicalCron } from './cron-text.ts'
import { resolveSpec } from './resolve-spec.ts'

const jobId = (n: number) => `0190a0b0-0000-7000-8000-${String(n).padStart(12, '0')}`
const noCalendars = { calendarOf: () => undefined }

function resolved(cron: string, n: number): string {
  const spec = resolveSpec({ cron: canonicalCron(cron), timezone: 'UTC' }, { jobId: jobId(n), ...noCalendars })
  return (spec as { cron: string }).cron
}

test('H is the same for a job each time, and spreads jobs over the whole field', () => {
  const expressions = Array.from({ length: 2_000 }, (_, n) => resolved('H H * * *', n))
  expect(expressions).toEqual(Array.from({ length: 2_000 }, (_, n) => resolved('H H * * *', n)))
  const [minutes, hours] = [0, 1].map((field) => new Set(expressions.map((cron) => Number(cron.split(' ')[field]))))
  expect([minutes?.size, hours?.size]).toEqual([60, 24])
  // Each field has a part of the hash of its own: else minute and hour would go together.
  expect(new Set(expressions).size).toBeGreaterThan(900)
})

test('what H stands for is written in stone: jobs that exist must not move', () => {
  expect(resolved('H H(0-7) H * H(1-5)', 1)).toBe('57 0 10 * 2')
})

test.each([
  ['H * * * *', /^(\d|[1-5]\d) \* \* \* \*$/],
  ['H(10-14) * * * *', /^1[0-4] \* \* \* \*$/],
  ['H/15 * * * *', /^(\d|1[0-4])-59\/15 \* \* \* \*$/],
  ['H(0-29)/10 * * * *', /^\d-29\/10 \* \* \* \*$/],
  ['0 0 H * *', /^0 0 ([1-9]|1\d|2[0-8]) \* \*$/],
  ['0 0 * * H', /^0 0 \* \* [0-6]$/],
  ['0 0 * H *', /^0 0 \* ([1-9]|1[0-2]) \*$/],
  ['H * * * * *', /^((\d|[1-5]\d) )?\* \* \* \* \*$/],
  ['5,H(30-39) * * * *', /^5,3\d \* \* \* \*$/],
])('%s becomes numbers within its bounds', (cron, pattern) => {
  for (let n = 0; n < 300; n++) {
    const text = resolved(cron, n)
    expect(text).toMatch(pattern)
    expect(canonicalCron(text)).toBe(text)
  }
})

test('H in days of a month fires in each month', () => {
  for (let n = 0; n < 100; n++) {
    const schedule = compileSchedule({ cron: resolved('0 0 H * *', n), timezone: 'UTC' })
    expect(schedule.count(Date.UTC(2026, 0, 1) - 1, Date.UTC(2027, 0, 1) - 1, 100)).toBe(12)
  }
})

test('a calendar by name becomes the days that it holds', () => {
  const calendar: Calendar = { days: ['2026-12-25'], weekend: [0, 6] }
  const spec: ScheduleSpec = {
    cron: '0 9 * * *',
    timezone: 'UTC',
    exclude: [{ calendar: 'de' }, { date: '2026-12-31' }],
  }
  const at = { jobId: jobId(1), calendarOf: (name: string) => (name === 'de' ? calendar : undefined) }
  expect(resolveSpec(spec, at).exclude).toEqual([calendar, { date: '2026-12-31' }])
  expect(() => resolveSpec({ ...spec, exclude: [{ calendar: 'fr' }] }, at)).toThrow('there is no calendar "fr"')
})

test('a schedule that was not resolved is refused rather than misread', () => {
  expect(() => compileSchedule({ cron: 'H * * * *', timezone: 'UTC' })).toThrow('without a job')
})
