import { BelfryError, type Complaint } from '@belfry/engine'
import { type TSchema, Type } from 'typebox'
import { expect, test } from 'vitest'
import { backfillBody } from './schemas/backfill.ts'
import { calendarInput } from './schemas/calendar.ts'
import { instantText } from './schemas/page.ts'
import { compileValidator } from './validation.ts'

function complaintsAbout(schema: TSchema, value: unknown, httpPart: 'querystring' | 'body'): readonly Complaint[] {
  const judge = compileValidator({ schema, method: 'GET', url: '/', httpPart }) as (value: unknown) => unknown
  const { error } = judge(value) as { error?: unknown }
  if (error instanceof BelfryError) return error.complaints
  throw new Error('accepted')
}

test('an instant without its offset, or whose plus became a space, is told apart and put right', () => {
  const query = Type.Object({ at: instantText('When.') })
  const about = (at: string) => complaintsAbout(query, { at }, 'querystring')
  expect(about('2026-12-01T09:00')).toEqual([
    { path: 'at', message: '"2026-12-01T09:00" lacks its offset from UTC', suggestion: '2026-12-01T09:00:00Z' },
  ])
  expect(about('2026-12-01T09:00:00 01:00')).toEqual([
    {
      path: 'at',
      message: expect.stringContaining('in an address "+" is written %2B'),
      suggestion: '2026-12-01T09:00:00%2B01:00',
    },
  ])
  expect(about('2026-02-30T09:00:00Z')).toEqual([{ path: 'at', message: expect.stringContaining('does not exist') }])
  expect(complaintsAbout(backfillBody, { from: '2026-01-01', to: '2026-02-01T00:00:00Z' }, 'body')).toEqual([
    {
      path: 'from',
      message: expect.stringContaining('is not a time such as'),
      suggestion: '2026-01-01T00:00:00Z',
    },
  ])
})

test('of a value that may have several forms, what is wrong with the one that was meant is said', () => {
  const about = (...days: unknown[]) => complaintsAbout(calendarInput, { days }, 'body')
  expect(about('2026-12-24', { date: '2026-12-25', nam: 'x' })).toEqual([
    { path: 'days[1].nam', message: 'there is no such field', suggestion: 'name' },
  ])
  expect(about({ date: 5 })).toEqual([{ path: 'days[0].date', message: 'must be a text, not 5' }])
  expect(about({ name: 'x' })).toEqual([{ path: 'days[0].date', message: 'is missing' }])
  expect(about(5)).toEqual([{ path: 'days[0]', message: 'has none of the forms it may have' }])
  expect(about({ date: '2026-12-25', nam: 'x' }, 5)).toEqual([
    { path: 'days[0].nam', message: 'there is no such field', suggestion: 'name' },
    { path: 'days[1]', message: 'has none of the forms it may have' },
  ])
})
