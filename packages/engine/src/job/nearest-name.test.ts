import { expect, test } from 'vitest'
import { nearestName } from './nearest-name.ts'

const names = ['cron', 'queue', 'runAt', 'timezone', 'idempotencyKey', 'payload', 'payloadRef']

test.each([
  ['crn', 'cron'],
  ['corn', 'cron'],
  ['run_at', 'runAt'],
  ['RUNAT', 'runAt'],
  ['time-zone', 'timezone'],
  ['quee', 'queue'],
  ['paylod', 'payload'],
  ['idempotency_key', 'idempotencyKey'],
  ['idempotentKey', 'idempotencyKey'],
])('%s means %s', (word, name) => {
  expect(nearestName(word, names)).toBe(name)
})

test.each(['', 'x', 'banana', 'y'.repeat(10_000)])('nothing is near %j', (word) => {
  expect(nearestName(word.slice(0, 100), names)).toBeUndefined()
})
