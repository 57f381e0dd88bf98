import { expect, test } from 'vitest'
import { BelfryError } from '../errors.ts'
import { inputOf } from './input-of.ts'
import { understandJob } from './understand-job.ts'

const understand = (limits: object) => understandJob({ queue: 'mail', payload: 1, ...limits }, { now: 0 })
const RATE = { limit: 10, period: '1m' }

test('limits are stored without what is usual, and read back as they could have been written', () => {
  const { definition, definitionJson } = understand({
    concurrency: { limit: 5, key: 'acme', onLimit: 'wait' },
    rateLimit: { ...RATE, burst: 10, cost: 1, key: 'acme' },
  })
  expect(definition.concurrency).toEqual({ key: 'acme', limit: 5 })
  expect(definition.rateLimit).toEqual({ key: 'acme', limit: 10, periodMs: 60_000 })
  expect(understandJob(inputOf(definition, null), { now: 0 }).definitionJson).toBe(definitionJson)
})

test.each([
  ['a limit of 0', { concurrency: { limit: 0 } }, 'concurrency.limit', /from 1 to 1000000/],
  ['a negative limit', { concurrency: { limit: -1 } }, 'concurrency.limit', /from 1 to 1000000/],
  ['a million and one', { concurrency: { limit: 1_000_001 } }, 'concurrency.limit', /from 1 to 1000000/],
  ['half a run', { concurrency: { limit: 1.5 } }, 'concurrency.limit', /whole number/],
  ['no limit', { concurrency: { key: 'acme' } }, 'concurrency.limit', /whole number/],
  ['a key of 10 KB', { concurrency: { limit: 1, key: 'k'.repeat(10_240) } }, 'concurrency.key', /at most 256/],
  ['an empty key', { concurrency: { limit: 1, key: '' } }, 'concurrency.key', /empty/],
  ['another word', { concurrency: { limit: 1, onLimit: 'drop' } }, 'concurrency.onLimit', /wait, skip, cancel_oldest/],
  ['a field that is none', { concurrency: { limit: 1, max: 2 } }, 'concurrency.max', /not a field/],
  ['no object', { concurrency: 5 }, 'concurrency', /must be an object/],
  ['a rate of 0', { rateLimit: { ...RATE, limit: 0 } }, 'rateLimit.limit', /from 1 to 1000000/],
  ['no period', { rateLimit: { limit: 1 } }, 'rateLimit.period', /./],
  ['a period of years', { rateLimit: { limit: 1, period: 'P9999D' } }, 'rateLimit.period', /at most|must/],
  [
    'a cost beyond the burst',
    { rateLimit: { ...RATE, burst: 2, cost: 3 } },
    'rateLimit.cost',
    /at most the burst of 2/,
  ],
  [
    'a burst of centuries',
    { rateLimit: { limit: 1, period: '366d', burst: 300_000, cost: 300_000 } },
    'rateLimit.burst',
    /at most 1: .* in 366 days, not 300000/,
  ],
  ['onLimit on a rate', { rateLimit: { ...RATE, onLimit: 'skip' } }, 'rateLimit.onLimit', /field of concurrency/],
  [
    'two keys',
    { concurrency: { limit: 1, key: 'a' }, rateLimit: { ...RATE, key: 'b' } },
    'rateLimit.key',
    /must be that of concurrency/,
  ],
  [
    'a key of the rate alone',
    { concurrency: { limit: 1 }, rateLimit: { ...RATE, key: 'b' } },
    'rateLimit.key',
    /left out/,
  ],
])('%s is refused', (_, limits, path, message) => {
  let refused: unknown
  try {
    understand(limits)
  } catch (error) {
    refused = error
  }
  expect(refused).toBeInstanceOf(BelfryError)
  const complaint = (refused as BelfryError).complaints.find((one) => one.path === path)
  expect(complaint?.message).toMatch(message)
})
