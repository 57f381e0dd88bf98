import { expect, test } from 'vitest'
import { hash64 } from '../job/ids.ts'
import { understandJob } from './understand-job.ts'

const now = Date.UTC(2026, 0, 15, 10)
const understand = (input: unknown) => understandJob(input, { now })

test('the commonest job is understood as little', () => {
  expect(understand({ queue: 'emails', payload: { i: 1 } })).toEqual({
    tenant: 'default',
    name: null,
    queue: 'emails',
    priority: 5,
    timeoutMs: 300_000,
    when: { kind: 'now' },
    definition: { queue: 'emails', payload: { i: 1 } },
    definitionJson: '{"queue":"emails","payload":{"i":1}}',
    idempotency: null,
    ref: null,
  })
})

test('whatever is the default leaves no trace in the definition', () => {
  const plain = understand({ queue: 'emails', cron: '0 9 * * *' })
  const spelled = understand({
    queue: 'emails',
    cron: '0 0 9 * * *',
    timezone: 'Etc/UTC',
    tenant: 'default',
    priority: 5,
    timeout: 'PT5M',
    overlap: 'skip',
    jitter: '0s',
    delivery: 'at_least_once',
    labels: {},
    retry: { maxAttempts: 5, backoff: { type: 'exponential', initial: '5s', factor: 2, max: '1h', jitter: 0.5 } },
    catchUp: { policy: 'latest', window: '1h', max: 1_000 },
    name: undefined,
    unheardOf: undefined,
  })
  expect(spelled).toEqual(plain)
  expect(plain.definitionJson).toBe('{"queue":"emails","schedule":{"cron":"0 9 * * *","timezone":"UTC"}}')
})

test('everything that can be said is kept', () => {
  const job = understand({
    name: 'digest',
    tenant: 'acme',
    every: '1d',
    timezone: 'europe/berlin',
    startAt: '2026-02-01T09:00:00+01:00',
    endAt: new Date(Date.UTC(2027, 0, 1)),
    maxRuns: 10,
    queue: 'mail.out',
    payloadRef: 'blob-1',
    retry: { maxAttempts: 3, backoff: { type: 'list', delays: ['1s', 'PT1M'] }, maxAge: '6h' },
    timeout: '90s',
    priority: 9,
    overlap: 'allow',
    catchUp: { policy: 'all' },
    jitter: 'PT10S',
    startDeadline: '1h',
    delivery: 'at_most_once',
    labels: { team: 'growth' },
  })
  const schedule = {
    every: 'P1D',
    timezone: 'Europe/Berlin',
    anchor: Date.UTC(2026, 1, 1, 8),
    endAt: Date.UTC(2027, 0, 1),
    catchUp: { policy: 'all', windowMs: 3_600_000, max: 1_000 },
  }
  expect(job).toMatchObject({ tenant: 'acme', name: 'digest', queue: 'mail.out', priority: 9, timeoutMs: 90_000 })
  expect(job.when).toEqual({
    ...{ kind: 'recurring', schedule, askedAt: now, overlap: 'allow', jitterMs: 10_000, maxRuns: 10 },
  })
  expect(job.definition).toEqual({
    queue: 'mail.out',
    payloadRef: 'blob-1',
    retry: {
      maxAttempts: 3,
      backoff: { type: 'list', delaysMs: [1_000, 60_000], jitter: 0 },
      maxAgeMs: 21_600_000,
    },
    timeoutMs: 90_000,
    startDeadlineMs: 3_600_000,
    delivery: 'at_most_once',
    labels: { team: 'growth' },
    name: 'digest',
    schedule,
    overlap: 'allow',
    jitterMs: 10_000,
    maxRuns: 10,
    priority: 9,
  })
  expect(JSON.parse(job.definitionJson)).toEqual(job.definition)
})

test.each<[object, object]>([
  [{}, { kind: 'now' }],
  [{ delay: '0s' }, { kind: 'now' }],
  [{ delay: '10m' }, { kind: 'once', at: now + 600_000 }],
  [{ delay: 'P1D' }, { kind: 'once', at: now + 86_400_000 }],
  [{ runAt: '2026-01-16T00:00:00Z' }, { kind: 'once', at: Date.UTC(2026, 0, 16) }],
  [{ runAt: new Date(now + 5) }, { kind: 'once', at: now + 5 }],
  [{ runAt: '2026-01-15T09:59:00Z' }, { kind: 'once', at: now - 60_000 }],
])('%j is a time', (words, when) => {
  expect(understand({ queue: 'q', ...words }).when).toEqual(when)
})

test('an interval without a start counts from now', () => {
  const { when } = understand({ queue: 'q', every: '15m' })
  expect(when).toMatchObject({ schedule: { every: 'PT15M', timezone: 'UTC', anchor: now } })
})

test('a job with a payload and no queue goes to the default queue, even if the payload is null', () => {
  expect(understand({ payload: null })).toMatchObject({
    queue: 'default',
    definitionJson: '{"queue":"default","payload":null}',
  })
  expect(understand({ payload: 0 }).definition).toEqual({ queue: 'default', payload: 0 })
  expect(understand({ payloadRef: 'r' }).queue).toBe('default')
})

test('a caller that acts for a tenant creates no jobs of others', () => {
  expect(understandJob({ queue: 'q' }, { now, tenant: 'acme' }).tenant).toBe('acme')
  expect(understandJob({ queue: 'q', tenant: 'acme' }, { now, tenant: 'acme' }).tenant).toBe('acme')
  expect(() => understandJob({ queue: 'q', tenant: 'other' }, { now, tenant: 'acme' })).toThrow(/tenant: must be left/)
  expect(understandJob({ queue: 'q', tenant: 'other' }, { now }).tenant).toBe('other')
})

test('who created a job stands in its definition and does not make it another request', () => {
  const job = { queue: 'q', idempotencyKey: 'k' }
  const first = understandJob(job, { now, createdBy: 'bk_one' })
  const second = understandJob(job, { now, createdBy: 'bk_two' })
  expect(first.definition.createdBy).toBe('bk_one')
  expect(second.idempotency?.fingerprint).toBe(first.idempotency?.fingerprint)
})

test('dates and other things that know their JSON become it, and what is undefined is left out', () => {
  class Money {
    cents = 5
    toJSON() {
      return { cents: this.cents, at: new Date(0) }
    }
  }
  class Order {
    id = 7
    note = undefined
  }
  const bare = Object.assign(Object.create(null), { a: 1 })
  const { definition, definitionJson } = understand({
    payload: { at: new Date(0), price: new Money(), order: new Order(), bare, gone: undefined },
  })
  expect(definition.payload).toStrictEqual({
    at: '1970-01-01T00:00:00.000Z',
    price: { cents: 5, at: '1970-01-01T00:00:00.000Z' },
    order: { id: 7 },
    bare: { a: 1 },
  })
  expect(JSON.parse(definitionJson)).toEqual(definition)
})

test('text that merely looks like an escape is left alone', () => {
  const payload = { a: '\\u0000', b: '\\\\ud800', c: '\u0001', d: '🎉' }
  expect(JSON.parse(understand({ payload }).definitionJson).payload).toEqual(payload)
})

test('a key called __proto__ is data like any other', () => {
  const job = understand(JSON.parse('{"payload":{"__proto__":{"x":"\\u0001"}},"labels":{"__proto__":"a"}}'))
  expect(job.definitionJson).toContain('"payload":{"__proto__":{"x":"\\u0001"}}')
  expect(job.definitionJson).toContain('"labels":{"__proto__":"a"}')
})

test('a payload may have 262,144 bytes of JSON and not one more', () => {
  const fits = 'é'.repeat((262_144 - 2) / 2)
  expect(understand({ payload: fits }).definition.payload).toBe(fits)
  for (const payload of [
    `${fits}x`,
    'x'.repeat(1e6),
    Array.from({ length: 140_000 }, () => 1),
    { k: ['日'.repeat(90_000)] },
  ]) {
    expect(() => understand({ payload })).toThrow(expect.objectContaining({ code: 'payload_too_large', status: 413 }))
  }
})

test('a small object that unfolds without end is too large, and is noticed at once', () => {
  let payload: unknown = {}
  for (let i = 0; i < 60; i++) payload = { a: payload, b: payload }
  expect(() => understand({ payload })).toThrow(expect.objectContaining({ code: 'payload_too_large' }))
})

test('a payload may be 100 levels deep and not one more', () => {
  const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
  expect(understand({ payload: nested(100) }).definition.payload).toEqual(nested(100))
  expect(() => understand({ payload: nested(101) })).toThrow('deeper than 100 levels')
  expect(() => understand({ payload: nested(5_000) })).toThrow('deeper than 100 levels')
})

test('the same request has the same fingerprint, whenever it is sent and however it is ordered', () => {
  const fingerprint = (input: object, at = now) =>
    understandJob({ idempotencyKey: 'k', ...input }, { now: at }).idempotency?.fingerprint
  const base = fingerprint({ queue: 'q', payload: { a: 1, b: [{ c: 2, d: 3 }] }, delay: '10m' })
  expect(fingerprint({ delay: 'PT10M', payload: { b: [{ d: 3, c: 2 }], a: 1 }, queue: 'q' }, now + 5_000)).toBe(base)
  expect(fingerprint({ queue: 'q', every: '1h' }, now + 5_000)).toBe(fingerprint({ queue: 'q', every: 'PT60M' }))
  const different = [
    base,
    fingerprint({ queue: 'q', payload: { a: 1, b: [{ c: 2, d: 3 }] }, delay: '11m' }),
    fingerprint({ queue: 'q', payload: { a: 1, b: [{ c: 2, d: 4 }] }, delay: '10m' }),
    fingerprint({ queue: 'p', payload: { a: 1, b: [{ c: 2, d: 3 }] }, delay: '10m' }),
    fingerprint({ queue: 'q' }),
    fingerprint({ queue: 'q', every: '1h' }),
    fingerprint({ queue: 'q', every: '1h', startAt: '2026-01-15T10:00:00Z' }),
    fingerprint({ queue: 'q', cron: '0 * * * *' }),
    fingerprint({ queue: 'q', cron: '0 * * * *', maxRuns: 3 }),
    fingerprint({ queue: 'q', runAt: '2026-01-15T10:10:00Z' }),
  ]
  expect(new Set(different).size).toBe(different.length)
})

test('an idempotency key is kept for a day unless said otherwise', () => {
  expect(understand({ queue: 'q', idempotencyKey: 'k' }).idempotency).toEqual({
    key: 'k',
    ttlMs: 86_400_000,
    fingerprint: hash64('{"queue":"q","schedule":null}'),
  })
  expect(understand({ queue: 'q', idempotencyKey: 'k', idempotencyTtl: '7d' }).idempotency?.ttlMs).toBe(604_800_000)
})
