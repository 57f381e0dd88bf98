import { request } from 'node:http'
import { silentLogger } from '@belfry/engine'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { App } from './app.ts'
import { createApp } from './create-app.ts'
import type { Service } from './service.ts'

const KEY = 'k'.repeat(32)

/** The engine of the moment: whatever reaches it is refused or fails on purpose. */
let engine: Service
let app: App
const errors: [string, Record<string, unknown> | undefined][] = []

beforeAll(async () => {
  const logger = {
    ...silentLogger,
    error: (message: string, fields?: object) => void errors.push([message, { ...fields }]),
  }
  // Made once: it takes a while to compile the schemas of all routes.
  app = await createApp({ service: () => engine, adminKey: KEY, logger, requestTimeoutMs: 300 })
})
afterAll(() => app.close())

function setup(service: Partial<Service> = {}) {
  const admin = {
    tenants: { quotasOf: async () => ({}), byName: async () => null },
    apiKeys: { authenticate: async () => null },
  }
  engine = { admin, tenant: () => ({}), endLeaseCalls: () => {}, ...service } as never
  errors.length = 0
  const send = (
    line: string,
    {
      body,
      headers,
      key = KEY,
    }: { body?: string | Buffer | object; headers?: Record<string, string>; key?: string | null } = {},
  ) => {
    const [method = 'GET', url = '/'] = line.split(' ')
    return app.inject({
      method: method as 'GET',
      url,
      ...(body === undefined ? {} : { payload: body }),
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    })
  }
  return { app, send, errors }
}

test('what is not there is a problem of 404, what has another method one of 405 that names the right ones', async () => {
  const t = setup()
  const nowhere = await t.send('GET /nowhere?secret=1')
  expect(nowhere.statusCode).toBe(404)
  expect(nowhere.json()).toMatchObject({ code: 'not_found', detail: 'there is no GET /nowhere' })
  const wrong = await t.send('POST /v1/jobs/some-id')
  expect(wrong.statusCode).toBe(405)
  expect(wrong.headers.allow).toBe('DELETE, GET, HEAD, PATCH, OPTIONS')
  expect(wrong.json()).toMatchObject({ code: 'method_not_allowed' })
  const options = await t.send('OPTIONS /v1/jobs')
  expect([options.statusCode, options.headers.allow]).toEqual([204, 'GET, HEAD, POST, OPTIONS'])
})

test('answers are not kept or sniffed, and carry an id: the one that came with the request, if it is a word', async () => {
  const t = setup()
  const own = await t.send('GET /nowhere')
  expect(own.headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
  expect(own.headers['x-request-id']).toMatch(/^[0-9a-f]{12}-/)
  const given = await t.send('GET /nowhere', { headers: { 'x-request-id': 'abc-1' } })
  expect(given.headers['x-request-id']).toBe('abc-1')
  const bad = await t.send('GET /nowhere', { headers: { 'x-request-id': 'a b"c' } })
  expect(bad.headers['x-request-id']).not.toContain('"')
})

test('without a key nothing is told, not even whether the body is right', async () => {
  const t = setup()
  const none = await t.send('POST /v1/jobs', { body: '{', key: null })
  expect(none.statusCode).toBe(401)
  expect(none.headers['www-authenticate']).toBe('Bearer realm="belfry"')
  expect(none.json()).toMatchObject({ code: 'unauthorized' })
  for (const key of ['', 'x', `${KEY}k`, KEY.slice(1), 'a b']) {
    expect((await t.send('GET /v1/jobs', { key })).statusCode, key).toBe(401)
  }
})

test('a node whose engine has not started answers 503 on every route that needs it', async () => {
  const waiting = await createApp({ service: () => null, adminKey: KEY })
  onTestFinished(() => waiting.close())
  const answer = await waiting.inject({ url: '/v1/jobs', headers: { authorization: `Bearer ${KEY}` } })
  expect([answer.statusCode, answer.json().code, answer.headers['retry-after']]).toEqual([
    503,
    'database_unavailable',
    '1',
  ])
})

test('a tenant that the header names must be there', async () => {
  const t = setup()
  const answer = await t.send('GET /v1/jobs', { headers: { 'belfry-tenant': 'nobody' } })
  expect([answer.statusCode, answer.json().code]).toEqual([404, 'not_found'])
})

test.each([
  ['cut off', '{', 'invalid_json', 400],
  ['with a key twice', '{"queue":"a","queue":"b"}', 'invalid_json', 400],
  ['with a key twice, deep inside', '{"payload":{"a":[{"x":1,"x":1}]},"queue":"a"}', 'invalid_json', 400],
  ['that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'invalid_json', 400],
  ['with a byte order mark', '\ufeff{}', 'invalid_json', 400],
  ['of nothing', '', 'invalid_request', 422],
  ['of null', 'null', 'invalid_request', 422],
  ['of a list', '[]', 'invalid_request', 422],
  ['of a text', '"x"', 'invalid_request', 422],
  ['of lists in lists', '['.repeat(100_000) + ']'.repeat(100_000), 'invalid_request', 422],
  ['of objects in objects', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`, 'invalid_request', 422],
  ['of more than a megabyte', `"${'x'.repeat(1_100_000)}"`, 'body_too_large', 413],
])('a body %s is refused', async (_what, body, code, status) => {
  const t = setup()
  const answer = await t.send('POST /v1/jobs', { body })
  expect([answer.statusCode, answer.json().code]).toEqual([status, code])
  expect(t.errors).toEqual([])
})

test('a large body of nothing but brackets is refused before it takes up memory', async () => {
  const t = setup()
  for (const body of ['['.repeat(16_000_000), `[${'{},'.repeat(5_000_000)}{}]`]) {
    const answer = await t.send('POST /v1/jobs/batch', { body })
    expect([answer.statusCode, answer.json().code]).toEqual([422, 'invalid_request'])
  }
})

test('equal keys of different objects, escaped quotes and keys named __proto__ are no duplicates', async () => {
  const created: unknown[] = []
  const jobs = {
    create: async (job: unknown) => {
      created.push(job)
      const understood = { understoodAs: 'now', expression: null, timezone: 'UTC', times: [] }
      return { jobId: 'j', status: 'active', nextRunAt: null, deduplicated: false, ...understood }
    },
  }
  const t = setup({ tenant: () => ({ jobs }) as never })
  const body =
    '{ "a" : {"x":1}, "b":{"x":"\\"x\\":1 \\\\"}, "__proto__":{"polluted":true}, "c":["x","x",":"], "\\u0061b":1 }'
  expect((await t.send('POST /v1/jobs', { body })).statusCode).toBe(201)
  expect(created).toEqual([JSON.parse(body)])
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
})

test('only JSON in UTF-8 is read', async () => {
  const t = setup()
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=utf-16',
    'nonsense',
  ]) {
    const answer = await t.send('POST /v1/jobs', { body: '{}', headers: { 'content-type': type } })
    expect([answer.statusCode, answer.json().code], type).toEqual([415, 'unsupported_media_type'])
  }
  const patch = await t.send('POST /v1/jobs', {
    body: '[]',
    headers: { 'content-type': 'application/merge-patch+json; charset="UTF-8"' },
  })
  expect(patch.statusCode).toBe(422)
})

test('everything that is wrong with a query or a body is named, with what was probably meant', async () => {
  const t = setup()
  const query = await t.send('GET /v1/jobs?limt=5&status=actve&limit=1.5')
  expect(query.statusCode).toBe(422)
  expect(query.json().errors).toEqual([
    { path: 'limt', message: 'there is no such field', suggestion: 'limit' },
    { path: 'status', message: expect.stringContaining('must be one of active'), suggestion: 'active' },
    { path: 'limit', message: 'must be a whole number, not 1.5' },
  ])
  const body = await t.send('POST /v1/jobs/actions', { body: { filter: { queue: 5 }, action: 'stop', dryrun: true } })
  expect(body.json()).toMatchObject({
    code: 'invalid_request',
    errors: [
      { path: 'dryrun', suggestion: 'dryRun' },
      { path: 'filter.queue', message: 'must be a text, not 5' },
      { path: 'action', message: expect.stringContaining('one of cancel, pause') },
    ],
  })
  const nul = await t.send('GET /v1/jobs?name=a%00b')
  expect(nul.json().errors).toEqual([{ path: 'name', message: expect.stringContaining('NUL') }])
})

test('a body with many mistakes gets an answer of bounded length', async () => {
  const t = setup()
  const body = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`${'x'.repeat(50)}${i}`, i]))
  const answer = await t.send('POST /v1/jobs/actions', { body })
  expect(answer.json().errors.length).toBeLessThanOrEqual(100)
  expect(answer.body.length).toBeLessThan(50_000)
})

test('an optional body may be left out, and is checked if it is there', async () => {
  const asked: unknown[] = []
  const jobs = {
    pause: async (...what: unknown[]) => {
      asked.push(what)
      return { status: 'paused' }
    },
  }
  const t = setup({ tenant: () => ({ jobs }) as never })
  expect((await t.send('POST /v1/jobs/x/pause')).json()).toEqual({ status: 'paused' })
  expect((await t.send('POST /v1/jobs/x/pause', { body: { reason: 'late' } })).statusCode).toBe(200)
  expect((await t.send('POST /v1/jobs/x/pause', { body: { raeson: 'late' } })).json().errors[0].suggestion).toBe(
    'reason',
  )
  expect(asked).toEqual([
    ['x', undefined],
    ['x', { reason: 'late' }],
  ])
})

test('an unexpected error is logged under the id that the answer names, and nothing of it is told', async () => {
  const t = setup({
    tenant: () => ({ jobs: { get: () => Promise.reject(new Error('password is hunter2')) } }) as never,
  })
  const answer = await t.send('GET /v1/jobs/x')
  expect(answer.statusCode).toBe(500)
  expect(answer.json()).toMatchObject({
    code: 'internal_error',
    detail: expect.stringContaining(answer.headers['x-request-id'] as string),
  })
  expect(answer.body).not.toContain('hunter2')
  expect(t.errors).toMatchObject([['a request failed', { requestId: answer.headers['x-request-id'] }]])
})

test('an address that is no URL is refused as a problem', async () => {
  const t = setup()
  const answer = await t.send('GET /v1/jobs/%zz')
  expect([answer.statusCode, answer.json().code]).toEqual([422, 'invalid_request'])
})

test('a body that does not arrive is cut off with 408', async () => {
  const t = setup()
  await t.app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = t.app.server.address() as { port: number }
  const status = await new Promise((resolve, reject) => {
    const slow = request(
      {
        port,
        host: '127.0.0.1',
        method: 'POST',
        path: '/v1/jobs',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'content-length': '100' },
      },
      (answer) => resolve(answer.statusCode),
    )
    slow.on('error', reject)
    slow.write('{"queue":')
  })
  expect(status).toBe(408)
})
