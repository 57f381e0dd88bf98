import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BelfryError } from '../errors.ts'
import { understandJob } from './understand-job.ts'

const now = Date.UTC(2026, 0, 15, 10)

function refused(input: unknown): BelfryError {
  try {
    understandJob(input, { now })
  } catch (error) {
    if (error instanceof BelfryError) return error
    throw error
  }
  throw new Error(`accepted: ${String(input)}`)
}

const cycle: Record<string, unknown> = { list: [] }
cycle.list = [{ back: cycle }]
const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`l${i}`, 'x']))
const throwing = {
  get x() {
    throw new Error('no')
  },
}

/** A job that is right but for what is given, the path of the complaint, a piece of its message, and what is suggested. */
const cases: [job: Record<string, unknown>, path: string, message: string, suggestion?: string][] = [
  // Fields
  [{ crn: '* * * * *' }, 'crn', 'is not a field of a job', 'cron'],
  [{ run_at: '2026-01-16T00:00:00Z' }, 'run_at', 'is not a field of a job', 'runAt'],
  [{ Queue: 'x' }, 'Queue', 'is not a field of a job', 'queue'],
  [{ data: {} }, 'data', 'is not a field of a job', 'payload'],
  [{ tz: 'UTC' }, 'tz', 'is not a field of a job', 'timezone'],
  [{ retries: 3 }, 'retries', 'is not a field of a job', 'retry'],
  [{ zebra: 1 }, 'zebra', 'is not a field of a job'],
  [{ 'a b': 1 }, '["a b"]', 'is not a field of a job'],
  [{ url: 'https://example.com' }, 'url', 'is not a field of a job', 'http'],
  [{ callback: {} }, 'callback', 'is not supported yet'],
  [{ after: { jobs: [] } }, 'after.jobs', 'must be a list of at least one job'],
  // Target
  [{ queue: undefined }, 'queue', 'is missing'],
  [{ queue: '' }, 'queue', 'must not be empty'],
  [{ queue: 'two words' }, 'queue', 'may only have letters', 'two-words'],
  [{ queue: 'é' }, 'queue', 'may only have letters'],
  [{ queue: 'a\0' }, 'queue', 'may only have letters', 'a-'],
  [{ queue: 'q'.repeat(129) }, 'queue', 'at most 128 characters, not 129'],
  [{ queue: 5 }, 'queue', 'must be a text, not 5'],
  [{ queue: null }, 'queue', 'must be a text, not null'],
  [{ tenant: 'a/b' }, 'tenant', 'may only have letters', 'a-b'],
  [{ payload: 1, payloadRef: 'r' }, 'payloadRef', 'cannot stand beside payload'],
  [{ payloadRef: '' }, 'payloadRef', 'must not be empty'],
  [{ payloadRef: {} }, 'payloadRef', 'must be a text, not an object'],
  // Names
  [{ name: '' }, 'name', 'must not be empty'],
  [{ name: '   ' }, 'name', 'must not be empty'],
  [{ name: 'n'.repeat(256) }, 'name', 'at most 255 characters, not 256'],
  [{ name: 'a\0b' }, 'name', 'contains a NUL'],
  [{ name: 'a\ud800b' }, 'name', 'half of a surrogate pair'],
  [{ idempotencyKey: '' }, 'idempotencyKey', 'must not be empty'],
  [{ idempotencyKey: 'k'.repeat(256) }, 'idempotencyKey', 'at most 255'],
  [{ idempotencyKey: 7 }, 'idempotencyKey', 'must be a text, not 7'],
  [{ idempotencyTtl: '1h' }, 'idempotencyTtl', 'without idempotencyKey'],
  [{ idempotencyKey: 'k', idempotencyTtl: '1ms' }, 'idempotencyTtl', 'at least PT1S'],
  // When
  [{ runAt: 1_800_000_000_000 }, 'runAt', 'not the number', '2027-01-15T08:00:00.000Z'],
  [{ runAt: 'soon' }, 'runAt', 'is not a time'],
  [{ runAt: '2026-02-30T00:00:00Z' }, 'runAt', 'does not exist'],
  [{ runAt: '2026-02-03T00:00:00' }, 'runAt', 'lacks its offset', '2026-02-03T00:00:00Z'],
  [{ runAt: new Date(Number.NaN) }, 'runAt', 'invalid Date'],
  [{ runAt: '2024-12-01T00:00:00Z' }, 'runAt', 'more than a year in the past'],
  [{ runAt: new Date(-1) }, 'runAt', 'before 1970'],
  [{ runAt: '2126-02-01T00:00:00Z' }, 'runAt', 'more than 100 years ahead'],
  [{ runAt: '2026-01-16T00:00:00Z', cron: '* * * * *' }, 'runAt', 'cannot stand beside cron', 'startAt'],
  [{ runAt: '2026-01-16T00:00:00Z', delay: '5s' }, 'delay', 'cannot stand beside runAt'],
  [{ cron: '* * * * *', every: '5m' }, 'every', 'cannot stand beside cron'],
  [{ delay: 5 }, 'delay', 'not the number 5', '5s'],
  [{ delay: '-5s' }, 'delay', 'is negative'],
  [{ delay: 'P1M' }, 'delay', 'no fixed length', 'P30D'],
  [{ delay: 'P200Y' }, 'delay', 'longer than 100 years'],
  [{ delay: '10 minutes' }, 'delay', 'is not a duration', '10m'],
  [{ cron: '* * * *' }, 'cron', 'must have 5 fields'],
  [{ cron: '61 * * * *' }, 'cron', 'the minute must be 0 to 59, not 61'],
  [{ cron: '0 0 30 2 *' }, 'cron', 'never fires'],
  [{ cron: 5 }, 'cron', 'must be a cron expression'],
  [{ cron: '0 9 * * *', timezone: 'Europe/Brelin' }, 'timezone', 'there is no time zone', 'Europe/Berlin'],
  [{ cron: '0 9 * * *', timezone: 2 }, 'timezone', 'must be a text such as'],
  [{ every: 60 }, 'every', 'not the number 60', '60s'],
  [{ every: '100ms' }, 'every', 'shorter than a second', 'PT1S'],
  [{ every: '1h', startAt: 'x' }, 'startAt', 'is not a time'],
  [{ every: '1h', endAt: '2026-01-01T00:00:00Z' }, 'endAt', 'lies in the past'],
  [{ every: '1h', startAt: '2026-03-01T00:00:00Z', endAt: '2026-02-01T00:00:00Z' }, 'endAt', 'later than startAt'],
  [{ cron: '0 0 1 6 *', endAt: '2026-02-01T00:00:00Z' }, 'endAt', 'before the first fire time'],
  [{ every: '1h', maxRuns: 0 }, 'maxRuns', 'whole number from 1'],
  [{ every: '1h', maxRuns: 1.5 }, 'maxRuns', 'not 1.5'],
  [{ every: '1h', maxRuns: '3' }, 'maxRuns', 'not "3"', '3'],
  [{ every: '1h', overlap: 'skipp' }, 'overlap', 'must be one of allow, skip', 'skip'],
  [{ every: '1h', jitter: 10 }, 'jitter', 'not the number 10', '10s'],
  [{ every: '1h', jitter: '2d' }, 'jitter', 'at most PT24H'],
  [{ every: '1h', catchUp: 'all' }, 'catchUp', 'must be an object, not "all"'],
  [{ every: '1h', catchUp: { policy: 'some' } }, 'catchUp.policy', 'must be one of latest, all, none'],
  [{ every: '1h', catchUp: { windw: '1h' } }, 'catchUp.windw', 'is not a field of catchUp', 'window'],
  [{ every: '1h', catchUp: { max: -1 } }, 'catchUp.max', 'not -1'],
  // Only for recurring jobs
  [{ timezone: 'UTC' }, 'timezone', 'only makes sense for a recurring job'],
  [{ startAt: '2026-02-01T00:00:00Z' }, 'startAt', 'only makes sense for a recurring job', 'runAt'],
  [{ delay: '1m', endAt: '2026-02-01T00:00:00Z' }, 'endAt', 'only makes sense for a recurring job'],
  [{ maxRuns: 1 }, 'maxRuns', 'only makes sense for a recurring job'],
  [{ overlap: 'skip' }, 'overlap', 'only makes sense for a recurring job'],
  [{ catchUp: {} }, 'catchUp', 'only makes sense for a recurring job'],
  [{ jitter: '1s' }, 'jitter', 'only makes sense for a recurring job'],
  // Policies
  [{ retry: 3 }, 'retry', 'must be an object, not 3', '{ maxAttempts: 3 }'],
  [{ retry: null }, 'retry', 'must be an object, not null'],
  [{ retry: { maxAttempt: 3 } }, 'retry.maxAttempt', 'is not a field of retry', 'maxAttempts'],
  [{ retry: { maxAttempts: 0 } }, 'retry.maxAttempts', 'not 0'],
  [{ retry: { maxAttempts: Number.POSITIVE_INFINITY } }, 'retry.maxAttempts', 'not Infinity'],
  [{ retry: { backoff: { type: 'exp' } } }, 'retry.backoff.type', 'must be one of exponential'],
  [{ retry: { backoff: { factor: 0.5 } } }, 'retry.backoff.factor', 'from 1 to 100, not 0.5'],
  [{ retry: { backoff: { factor: Number.NaN } } }, 'retry.backoff.factor', 'not NaN'],
  [{ retry: { backoff: { initial: '2m', max: '1m' } } }, 'retry.backoff.max', 'not be less than initial'],
  [{ retry: { backoff: { jitter: 2 } } }, 'retry.backoff.jitter', 'from 0 to 1, not 2'],
  [
    { retry: { backoff: { type: 'fixed', factor: 2 } } },
    'retry.backoff.factor',
    'no meaning for a backoff of type fixed',
  ],
  [{ retry: { backoff: { type: 'list' } } }, 'retry.backoff.delays', 'must be a list of 1 to 100'],
  [{ retry: { backoff: { delays: ['1s', 2] } } }, 'retry.backoff.delays[1]', 'not the number 2', '2s'],
  [{ retry: { maxAge: '0s' } }, 'retry.maxAge', 'at least PT0.001S'],
  [{ timeout: 30_000 }, 'timeout', 'not the number 30000', '30000s'],
  [{ timeout: '0s' }, 'timeout', 'at least'],
  [{ timeout: '8d' }, 'timeout', 'at most PT168H'],
  [{ priority: 10 }, 'priority', 'from 0 to 9, not 10'],
  [{ priority: -1 }, 'priority', 'not -1'],
  [{ priority: 'high' }, 'priority', 'not "high"'],
  [{ fairnessKey: '' }, 'fairnessKey', 'must not be empty'],
  [{ fairnessKey: 'k'.repeat(257) }, 'fairnessKey', 'at most 256 characters, not 257'],
  [{ fairnessKey: 7 }, 'fairnessKey', 'must be a text, not 7'],
  [{ startDeadline: true }, 'startDeadline', 'not true'],
  [{ delivery: 'exactly_once' }, 'delivery', 'must be one of at_least_once, at_most_once'],
  [{ delivery: 'at-most-once' }, 'delivery', 'must be one of', 'at_most_once'],
  [{ labels: ['a'] }, 'labels', 'must be an object of texts, not a list'],
  [{ labels: { a: 1 } }, 'labels.a', 'must be a text, not 1', '"1"'],
  [{ labels: { a: 'x\0' } }, 'labels.a', 'contains a NUL'],
  [{ labels: { 'a\0': 'x' } }, 'labels["a\\u0000"]', 'has a name that contains a NUL'],
  [{ labels: { '': 'x' } }, 'labels[""]', 'has a name that is empty'],
  [{ labels: many }, 'labels', 'at most 64, not 65'],
  // Payloads that JSON or PostgreSQL cannot hold
  [{ payload: { a: [1, { b: 'x\0' }] } }, 'payload.a[1].b', 'contains a NUL'],
  [{ payload: '\ud83d' }, 'payload', 'half of a surrogate pair'],
  [{ payload: { 'k\udc00': 1 } }, 'payload["k\\udc00"]', 'has a name that contains half'],
  [{ payload: { 'x\0y': { z: 1 } } }, 'payload["x\\u0000y"]', 'has a name that contains a NUL'],
  [{ payload: { a: Number.NaN } }, 'payload.a', 'is NaN'],
  [{ payload: [Number.NEGATIVE_INFINITY] }, 'payload[0]', 'is -Infinity'],
  [{ payload: { a: () => 1 } }, 'payload.a', 'is a function'],
  [{ payload: Symbol('s') }, 'payload', 'is a symbol'],
  [{ payload: { id: 12n } }, 'payload.id', 'is a bigint', '"12"'],
  [{ payload: [1, undefined] }, 'payload[1]', 'is undefined', 'null'],
  [{ payload: { m: new Map() } }, 'payload.m', 'is of type "Map"'],
  [{ payload: { e: new Error('x') } }, 'payload.e', 'is of type "Error"'],
  [{ payload: { b: new Uint8Array(3) } }, 'payload.b', 'is of type "Uint8Array"'],
  [{ payload: { d: new Date(Number.NaN) } }, 'payload.d', 'is an invalid Date'],
  [{ payload: cycle }, 'payload.list[0].back', 'contains itself'],
]

const titled = cases.map(([job, path, message, suggestion]) => [path, message, job, suggestion] as const)

test.each(titled)('a job is refused because %s %s', (path, message, job, suggestion) => {
  const error = refused({ queue: 'q', ...job })
  expect(error.complaints.map((complaint) => complaint.path)).toEqual([path])
  const [complaint] = error.complaints
  expect(complaint?.message).toContain(message)
  expect(complaint?.suggestion).toBe(suggestion)
  expect(error.code).toBe('invalid_job')
  expect(error.message).toContain(path)
  expect(error.message).toContain(message)
})

test.each([undefined, null, 5, 'job', true, [], [{}], () => {}, Symbol('x'), 5n, new Date(0)])(
  'a job that is no object is refused',
  (input) => {
    const error = refused(input)
    expect(error.code).toBe('invalid_job')
    expect(error.complaints[0]?.message).toContain('must be an object')
  },
)

test('everything that is wrong is said at once, and the message names the first', () => {
  const error = refused({
    crn: '* * * * *',
    queue: '',
    priority: 99,
    retry: { maxAttempts: -1, backoff: { initial: 5 } },
    payload: { a: '\0', b: Number.NaN, c: '\ud800' },
    labels: { x: 1, y: 2 },
  })
  expect(error.complaints.map((complaint) => complaint.path)).toEqual([
    'crn',
    'queue',
    'payload.a',
    'payload.b',
    'payload.c',
    'retry.maxAttempts',
    'retry.backoff.initial',
    'labels.x',
    'labels.y',
    'priority',
  ])
  expect(error.message).toBe('crn: is not a field of a job; did you mean cron? (and 9 more)')
})

test('a payload that would be fine but for a NUL is complained about beside the other mistakes', () => {
  const error = refused({ queue: 'q', priority: 99, payload: { deep: ['ok', 'a\0'] } })
  expect(error.complaints.map((complaint) => complaint.path)).toEqual(['priority', 'payload.deep[1]'])
})

test('a thousand mistakes make an answer of bounded size', () => {
  const job = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`${'x'.repeat(1_000)}${i}`, 1]))
  const error = refused({ ...job, payload: Array.from({ length: 1_000 }, () => Number.NaN) })
  expect(error.complaints.length).toBe(100)
  expect(JSON.stringify(error.complaints).length).toBeLessThan(200_000)
})

test('an object of the caller that throws while it is read is a refusal with its cause', () => {
  for (const job of [
    { queue: 'q', payload: throwing },
    {
      queue: 'q',
      labels: {
        ...{},
        get y() {
          return throwing.x
        },
      },
    },
  ]) {
    const error = refused(job)
    expect(error.code).toBe('invalid_job')
    expect(error.cause).toBeInstanceOf(Error)
  }
})

test('whatever is given, the answer is a job or a BelfryError', () => {
  const fields = [
    'runAt',
    'delay',
    'cron',
    'every',
    'when',
    'exclude',
    'onExcluded',
    'dst',
    'overlap',
    'timezone',
    'startAt',
    'endAt',
    'maxRuns',
    'queue',
    'payload',
    'retry',
  ]
  const values = fc.oneof(
    fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withSparseArray: true }),
    fc.constantFrom(
      '5m',
      '* * * * *',
      '2026-02-01T00:00:00Z',
      'UTC',
      'P1M',
      3,
      -1,
      'every day',
      'R3/PT5M',
      'H * * * *',
    ),
    fc.constantFrom<unknown>(['2026-02-01'], [{ cron: '* * * * *' }], ['@daily', '5 * * * *'], { gap: 'skip' }),
  )
  fc.assert(
    fc.property(fc.dictionary(fc.oneof(fc.constantFrom(...fields), fc.string()), values), (input) => {
      try {
        const job = understandJob(input, { now })
        expect(JSON.parse(job.definitionJson)).toEqual(JSON.parse(JSON.stringify(job.definition)))
      } catch (error) {
        if (!(error instanceof BelfryError)) throw error
      }
    }),
    { numRuns: 3_000 },
  )
})
