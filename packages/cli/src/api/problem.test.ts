import { expect, test } from 'vitest'
import { problemOf } from './problem.ts'

const problem = (fields: object) =>
  JSON.stringify({ status: 422, code: 'invalid_job', title: 'The job cannot be understood', ...fields })

test('every complaint is shown with its suggestion', () => {
  const errors = [
    { path: 'crn', message: 'is unknown', suggestion: 'cron' },
    { path: 'retry.maxAttempts', message: 'must be a whole number from 1 to 1000' },
  ]
  expect(problemOf(422, problem({ detail: 'crn is unknown (and 1 more)', errors })).message).toBe(
    'The job cannot be understood (invalid_job)\n  crn: is unknown; did you mean cron?\n  retry.maxAttempts: must be a whole number from 1 to 1000',
  )
})

test('what the detail says already is not said twice', () => {
  const errors = [{ path: 'cron', message: 'is never due' }]
  expect(problemOf(422, problem({ detail: 'cron is never due', errors })).message).toBe(
    'cron is never due (invalid_job)',
  )
})

test('an answer that is no problem is shown in short', () => {
  expect(problemOf(502, `<html>\n<h1>Bad gateway</h1>${'x'.repeat(1_000)}`).message).toMatch(
    /^the server answered 502: <html> <h1>Bad gateway<\/h1>x+; is it a Belfry node\?$/,
  )
  expect(problemOf(204, '').message).toBe('the server answered 204; is it a Belfry node?')
})
