import { expect, test } from 'vitest'
import { BelfryError } from '../errors.ts'
import { Complaints } from '../input/read-fields.ts'
import { resolveFor } from './resolve-when.ts'
import { understandWhen } from './understand-when.ts'

const now = Date.UTC(2026, 0, 15, 10)
const JOB = '019a8d3e-1f2a-7007-8abc-0123456789ab'

test('words that come to a day that does not exist are refused where they stand', () => {
  const complaints = new Complaints()
  const understood = { kind: 'recurring' as const, cron: ['0 9 1 * *', '0 9 30 2 *'], every: null }
  const known = { text: 'every impossible day', timezone: 'UTC', understood }
  understandWhen(complaints, { when: known.text }, { now, known })
  expect(complaints.list).toEqual([{ path: 'when', message: '"0 9 30 2 *" never fires: there is no such day' }])
})

test('an expression that is impossible once its job is known is refused with its place', () => {
  const schedule = { cron: ['0 9 * * *', '0 9 30 2 *'], timezone: 'UTC', exclude: [{ calendar: 'holidays' }] }
  const calendars = new Map([['holidays', { days: ['2026-12-25'], weekend: [] }]])
  const refused = (spec: Parameters<typeof resolveFor>[0]) => {
    try {
      return resolveFor(spec, { jobId: JOB, calendars, from: now })
    } catch (error) {
      return error instanceof BelfryError && [error.code, error.complaints[0]?.path]
    }
  }
  expect(refused(schedule)).toEqual(['invalid_job', 'cron[1]'])
  expect(refused({ ...schedule, cron: '0 9 30 2 *' })).toEqual(['invalid_job', 'cron'])
  expect(refused({ ...schedule, exclude: [{ calendar: 'gone' }] })).toEqual(['invalid_job', 'exclude[0].calendar'])
})
