import { expect, test } from 'vitest'
import { BelfryApiError, BelfryConnectionError } from './errors.ts'
import type { HttpAnswer, HttpRequest } from './http.ts'
import { systemRuntime } from './runtime/runtime.ts'
import { type ConnectionOptions, Transport } from './transport.ts'

type Reply = HttpAnswer | Error | 'never'

/** A transport whose server says these things one after the other, and whose pauses pass at once. */
function setup(replies: Reply[], options: Partial<ConnectionOptions> = {}) {
  const requests: ({ url: string } & HttpRequest)[] = []
  const pauses: number[] = []
  const fetch = async (url: string, request: HttpRequest): Promise<HttpAnswer> => {
    requests.push({ url, ...request })
    const reply = replies.shift() ?? new Error('nobody said what to answer')
    if (reply === 'never') return untilAborted(request.signal)
    if (reply instanceof Error) throw reply
    return reply
  }
  const runtime = {
    ...systemRuntime,
    chance: () => 0.5,
    timer: (ms: number, wake: () => void) => {
      // What is longer is the time limit of a try.
      if (ms < 30_000) {
        pauses.push(ms)
        queueMicrotask(wake)
      }
      return { cancel: () => {} }
    },
  }
  const transport = new Transport({ url: 'http://belfry.test/', key: 'bk_1', fetch, ...options }, runtime)
  return { transport, requests, pauses }
}

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    const fail = () => reject(new Error('This operation was aborted'))
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail)
  })

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): HttpAnswer =>
  new Response(status === 204 ? null : JSON.stringify(body), { status, headers })

const problem = (status: number, code: string, headers: Record<string, string> = {}): HttpAnswer =>
  answer(status, { type: `urn:belfry:problem:${code}`, title: 'A title', status, code, detail: 'so it is' }, headers)

const broken = (code = 'ECONNRESET') =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) })
const me = { tenant: 'default' }

test('a call carries the key, the tenant, an id of its own and its body as JSON', async () => {
  const { transport, requests } = setup([answer(201, { id: 1 })], { tenant: 'acme' })
  await transport.call('POST /v1/tenants', { body: { name: 'acme' } }, { requestId: 'mine' })
  expect(requests[0]).toMatchObject({
    url: 'http://belfry.test/v1/tenants',
    method: 'POST',
    body: '{"name":"acme"}',
    headers: {
      authorization: 'Bearer bk_1',
      'belfry-tenant': 'acme',
      'x-request-id': 'mine',
      'content-type': 'application/json',
    },
  })
})

test('a call without a body says nothing of its type', async () => {
  const { transport, requests } = setup([answer(200, me)])
  await transport.call('GET /v1/whoami', {})
  expect(requests[0]?.headers).not.toHaveProperty('content-type')
  expect(requests[0]).not.toHaveProperty('body')
})

test('names are written so that they stay one part of the address, and dates so that the server reads them', async () => {
  const { transport, requests } = setup([answer(200, {}), answer(200, { items: [], nextCursor: null })])
  await transport.call('POST /v1/circuits/{origin}/reset', { path: { origin: 'https://a.example:443' } })
  expect(requests[0]?.url).toBe('http://belfry.test/v1/circuits/https%3A%2F%2Fa.example%3A443/reset')
  const query = { from: new Date(0), label: 'team=a&b' }
  await transport.call('GET /v1/runs', { query })
  expect(requests[1]?.url).toBe('http://belfry.test/v1/runs?from=1970-01-01T00%3A00%3A00.000Z&label=team%3Da%26b')
})

test.each(['', '.', '..'])('the id %j is refused before it names another route', async (jobId) => {
  const { transport, requests } = setup([])
  await expect(transport.call('GET /v1/jobs/{jobId}', { path: { jobId } })).rejects.toThrow('jobId must be')
  expect(requests).toEqual([])
})

test.each([
  ['a broken connection', broken()],
  ['a gateway without a server', answer(502, '<html>')],
  ['a node without its database', problem(503, 'database_unavailable')],
  ['a gateway that waited too long', answer(504, '')],
  ['a request that was cut off', problem(408, 'request_timeout')],
])('a harmless call is repeated after %s', async (_name, reply) => {
  const { transport, requests, pauses } = setup([reply, answer(200, me)])
  expect(await transport.call('GET /v1/whoami', {})).toEqual(me)
  expect(pauses).toEqual([100])
  expect(requests[1]?.headers['x-request-id']).toBe(requests[0]?.headers['x-request-id'])
})

test('pauses double, chance takes its share, and after the last repetition the error is thrown', async () => {
  const { transport, pauses } = setup([broken(), broken(), broken(), broken(), broken()])
  const error = await transport.call('GET /v1/whoami', {}).catch((one: unknown) => one)
  expect(error).toBeInstanceOf(BelfryConnectionError)
  expect(error).toMatchObject({ isTimeout: false, wasSent: true, message: expect.stringContaining('ECONNRESET') })
  expect(pauses).toEqual([100, 200, 400, 800])
})

test('a call that may have been done, and that must not be done twice, is not repeated', async () => {
  const { transport, requests } = setup([broken()])
  const call = transport.call('POST /v1/jobs/{jobId}/trigger', { path: { jobId: 'j' } })
  await expect(call).rejects.toBeInstanceOf(BelfryConnectionError)
  expect(requests).toHaveLength(1)
})

test('any call is repeated if nobody can have got it', async () => {
  const { transport } = setup([broken('ECONNREFUSED'), answer(200, { runId: 'r' })])
  expect(await transport.call('POST /v1/jobs/{jobId}/trigger', { path: { jobId: 'j' } })).toEqual({ runId: 'r' })
})

test('a call that was turned away waits as long as the server asks, and is repeated whatever it is', async () => {
  const { transport, pauses } = setup([
    problem(429, 'rate_limited', { 'retry-after': '7' }),
    problem(429, 'rate_limited', { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }),
    answer(200, { runId: 'r' }),
  ])
  expect(await transport.call('POST /v1/jobs/{jobId}/trigger', { path: { jobId: 'j' } })).toEqual({ runId: 'r' })
  expect(pauses).toEqual([7_100, 200])
})

test('a quota that is used up, and a wish to wait for an hour, are told to the caller', async () => {
  const { transport, requests } = setup([
    problem(429, 'quota_exceeded'),
    problem(503, 'database_unavailable', { 'retry-after': '3600' }),
  ])
  await expect(transport.call('GET /v1/whoami', {})).rejects.toMatchObject({ code: 'quota_exceeded' })
  await expect(transport.call('GET /v1/whoami', {})).rejects.toMatchObject({ retryAfterMs: 3_600_000 })
  expect(requests).toHaveLength(2)
})

test('a create whose first try is still under way is asked for again', async () => {
  const { transport } = setup([problem(409, 'in_progress'), answer(200, { jobId: 'j' })])
  const created = transport.call('POST /v1/jobs', { body: { idempotencyKey: 'k' } }, { isRepeatable: true })
  expect(await created).toEqual({ jobId: 'j' })
})

test('what a lost answer has deleted counts as deleted; what was never there does not', async () => {
  const { transport } = setup([broken(), problem(404, 'not_found'), problem(404, 'not_found')])
  const gone = () => transport.call('DELETE /v1/jobs/{jobId}', { path: { jobId: 'j' } })
  expect(await gone()).toBeUndefined()
  await expect(gone()).rejects.toMatchObject({ code: 'not_found' })
})

test('a refusal is an error with the code, the fields and the id of its request', async () => {
  const errors = [{ path: 'dealy', message: 'there is no such field', suggestion: 'delay' }]
  const body = { type: 'x', title: 'T', status: 422, code: 'invalid_job', detail: 'dealy: no', errors }
  const { transport } = setup([answer(422, body, { 'x-request-id': 'server-1' })])
  const error = await transport.call('POST /v1/jobs', { body: {} }).catch((one: unknown) => one)
  expect(error).toBeInstanceOf(BelfryApiError)
  expect(error).toMatchObject({ code: 'invalid_job', status: 422, errors, requestId: 'server-1', retryAfterMs: null })
  expect(BelfryApiError.is(error, 'invalid_job', 'invalid_request')).toBe(true)
  expect(BelfryApiError.is(error, 'name_taken')).toBe(false)
})

test.each([
  ['a page where JSON is meant', new Response('<html>hello', { status: 200 })],
  ['a redirect', new Response(null, { status: 301, headers: { location: 'https://elsewhere.test' } })],
  ['a page that refuses', new Response('<html>forbidden', { status: 403 })],
])('%s is an unknown_error', async (_name, reply) => {
  const { transport } = setup([reply])
  await expect(transport.call('GET /v1/whoami', {})).rejects.toMatchObject({
    code: 'unknown_error',
    status: reply.status,
  })
})

test('a try that gets no answer in time is ended and repeated', async () => {
  const { transport, requests } = setup(['never', answer(200, me)])
  expect(await transport.call('GET /v1/whoami', {}, { timeoutMs: 1_000 })).toEqual(me)
  expect(requests[0]?.signal.aborted).toBe(true)
})

test('a long poll may take its waiting time and the time of a call', async () => {
  const { transport, pauses } = setup(['never'], { timeoutMs: 2_000, retries: 0 })
  const call = transport.call('GET /v1/whoami', {}, { waitMs: 5_000 })
  await expect(call).rejects.toMatchObject({ isTimeout: true, message: expect.stringContaining('7000 ms') })
  expect(pauses).toEqual([7_000])
})

test('an aborted call throws the reason of its signal, before, during and between tries', async () => {
  const reason = new Error('the user went away')
  const before = setup([])
  await expect(before.transport.call('GET /v1/whoami', {}, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  expect(before.requests).toEqual([])

  const during = new AbortController()
  const { transport, requests } = setup(['never'])
  const call = transport.call('GET /v1/whoami', {}, { signal: during.signal })
  during.abort(reason)
  await expect(call).rejects.toBe(reason)
  expect(requests[0]?.signal.aborted).toBe(true)

  const between = new AbortController()
  const timer = (ms: number) => {
    if (ms < 30_000) queueMicrotask(() => between.abort(reason))
    return { cancel: () => {} }
  }
  const fetch = () => Promise.reject(broken())
  const waiting = new Transport({ url: 'http://belfry.test', fetch }, { ...systemRuntime, timer })
  await expect(waiting.call('GET /v1/whoami', {}, { signal: between.signal })).rejects.toBe(reason)
})
