import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BelfryError } from '../errors.ts'
import type { Definition, HttpTarget } from '../job/definition.ts'
import { shownHttp } from './http-input.ts'
import { inputOf } from './input-of.ts'
import { mergeUpdate } from './merge-update.ts'
import { understandJob } from './understand-job.ts'

const now = Date.UTC(2026, 0, 15, 10)
const url = 'https://example.com/hook'
const stored = `pl_${'0'.repeat(32)}`
const understand = (input: unknown) => understandJob(input, { now })
const targetOf = (http: unknown): HttpTarget | undefined => understand({ http }).definition.http

function refused(input: unknown): BelfryError {
  try {
    understand(input)
  } catch (error) {
    if (error instanceof BelfryError) return error
    throw error
  }
  throw new Error(`accepted: ${JSON.stringify(input)}`)
}

test('an HTTP call goes to the queue of the system, and may take half a minute', () => {
  const job = understand({ http: { url }, payload: { a: 1 } })
  expect(job).toMatchObject({ queue: 'http', timeoutMs: 30_000 })
  expect(job.definitionJson).toBe(`{"queue":"http","http":{"url":"${url}"},"payload":{"a":1}}`)
  expect(understand({ http: { url }, timeout: '30s' }).definition.timeoutMs).toBeUndefined()
  expect(understand({ http: { url }, timeout: '5m' })).toMatchObject({ timeoutMs: 300_000 })
  expect(understand({ http: { url }, timeout: '5m' }).definition.timeoutMs).toBe(300_000)
  expect(understand({ queue: 'q', timeout: '30s' }).definition.timeoutMs).toBe(30_000)
})

test('an HTTP call may name a queue of its own', () => {
  expect(understand({ http: { url }, queue: 'hooks' })).toMatchObject({ queue: 'hooks', timeoutMs: 30_000 })
})

test('everything that can be said about a call is kept', () => {
  const http = {
    url: 'http://example.com:8080/a/{{runId}}?at={{nominalAt}}&k={{secret:api.key}}',
    method: 'PUT',
    headers: { 'X-Try': '{{attempt}}', Authorization: 'Bearer {{ secret:token }}' },
    body: { deep: [{ text: '{{runId}} {{attempt}}' }], n: 1, none: null },
    succeedOn: ['404'],
    retryOn: [410, '4XX'],
    failOn: ['5xx'],
  }
  expect(targetOf(http)).toEqual({ ...http, body: { json: http.body }, retryOn: ['410', '4xx'] })
  const auth = { tokenUrl: 'https://login.example.com/token', clientId: 'a', clientSecret: '{{secret:s}}', scope: 'x' }
  expect(targetOf({ url, auth: { type: 'oauth2', ...auth } })?.auth).toEqual(auth)
  expect(targetOf({ url, auth: { ...auth, audience: 'y' } })?.auth).toEqual({ ...auth, audience: 'y' })
})

test('a body is a text, bytes or JSON', () => {
  const bodyOf = (body: unknown) => targetOf({ url, body })?.body
  expect(bodyOf('text')).toEqual({ text: 'text' })
  expect(bodyOf('')).toEqual({ text: '' })
  expect(bodyOf({ base64: 'AP+A' })).toEqual({ base64: 'AP+A' })
  expect(bodyOf({ base64: 'AP+A', more: 1 })).toEqual({ json: { base64: 'AP+A', more: 1 } })
  expect(bodyOf({ base64: 5 })).toEqual({ json: { base64: 5 } })
  expect(bodyOf(null)).toEqual({ json: null })
  expect(bodyOf(0)).toEqual({ json: 0 })
  expect(bodyOf({ at: new Date(0) })).toEqual({ json: { at: '1970-01-01T00:00:00.000Z' } })
  expect(bodyOf(undefined)).toBeUndefined()
})

test('usual methods may be written small, others are kept as they are', () => {
  const methodOf = (method: unknown) => targetOf({ url, method })?.method
  expect(methodOf('post')).toBeUndefined()
  expect(methodOf('get')).toBe('GET')
  expect(methodOf('PROPFIND')).toBe('PROPFIND')
  expect(methodOf('purge')).toBe('purge')
})

/** A call that is right but for what is given, where the complaint points, a piece of it, and what is suggested. */
const cases: [job: Record<string, unknown>, path: string, message: string, suggestion?: string][] = [
  [{ http: null }, 'http', 'must be an object'],
  [{ http: 'https://example.com' }, 'http', 'must be an object', '{ url: "https://example.com" }'],
  [{ http: {} }, 'http.url', 'is missing'],
  [{ http: { url, uri: 1 } }, 'http.uri', 'is not a field of http', 'url'],
  [{ http: { url: 5 } }, 'http.url', 'must be a text'],
  [{ http: { url: '' } }, 'http.url', 'must not be empty'],
  [{ http: { url: 'example.com/a' } }, 'http.url', 'lacks its scheme', 'https://example.com/a'],
  [{ http: { url: '/a' } }, 'http.url', 'is not a URL'],
  [{ http: { url: 'https://' } }, 'http.url', 'is not a URL'],
  [{ http: { url: 'ftp://example.com' } }, 'http.url', 'must begin with https://'],
  [{ http: { url: 'file:///etc/passwd' } }, 'http.url', 'must begin with https://'],
  [{ http: { url: 'javascript:alert(1)' } }, 'http.url', 'must begin with https://'],
  [{ http: { url: 'https://a:b@example.com' } }, 'http.url', 'must not hold a password'],
  [{ http: { url: 'https://a@example.com' } }, 'http.url', 'must not hold a password'],
  [{ http: { url: `${url}#part` } }, 'http.url', 'must not hold a fragment'],
  [{ http: { url: 'https://{{secret:host}}/a' } }, 'http.url', ''],
  [{ http: { url: 'https://{{runId}}.example.com/a' } }, 'http.url', ''],
  [{ http: { url: 'https://example.com:{{attempt}}/a' } }, 'http.url', ''],
  [{ http: { url: '{{secret:scheme}}://example.com/' } }, 'http.url', ''],
  [{ http: { url: `${url}/${'a'.repeat(4_096)}` } }, 'http.url', 'at most 4096 characters'],
  [{ http: { url: `${url}/{{nominalat}}` } }, 'http.url', 'is not a template', '{{nominalAt}}'],
  [{ http: { url: `${url}/{{run_id}}` } }, 'http.url', 'is not a template', '{{runId}}'],
  [{ http: { url: `${url}/{{secrets.key}}` } }, 'http.url', 'is not a template', '{{secret:key}}'],
  [{ http: { url: `${url}/{{secret:a b}}` } }, 'http.url', 'a secret has 1 to 128 letters'],
  [{ http: { url: `${url}/{{runId` } }, 'http.url', 'no "}}" closes'],
  [{ http: { url, method: 'A B' } }, 'http.method', 'must be a method'],
  [{ http: { url, method: 'GET\r\nX: 1' } }, 'http.method', 'must be a method'],
  [{ http: { url, method: 7 } }, 'http.method', 'must be a method'],
  [{ http: { url, method: 'CONNECT' } }, 'http.method', 'cannot be used'],
  [{ http: { url, method: 'trace' } }, 'http.method', 'cannot be used'],
  [{ http: { url, headers: [] } }, 'http.headers', 'must be an object of texts'],
  [{ http: { url, headers: { 'a b': 'x' } } }, 'http.headers["a b"]', 'is not a name'],
  [{ http: { url, headers: { '': 'x' } } }, 'http.headers[""]', 'is not a name'],
  [{ http: { url, headers: { 'a:': 'x' } } }, 'http.headers["a:"]', 'is not a name'],
  [{ http: { url, headers: { a: 'x\r\ny: z' } } }, 'http.headers.a', 'holds a line break'],
  [{ http: { url, headers: { a: 'x\0' } } }, 'http.headers.a', 'holds a line break'],
  [{ http: { url, headers: { a: '\u007f' } } }, 'http.headers.a', 'holds a line break'],
  [{ http: { url, headers: { a: '€' } } }, 'http.headers.a', 'no header can hold'],
  [{ http: { url, headers: { a: 5 } } }, 'http.headers.a', 'must be a text', '"5"'],
  [{ http: { url, headers: { a: 'x'.repeat(8_193) } } }, 'http.headers.a', 'at most 8192'],
  [{ http: { url, headers: { 'X-A': '1', 'x-a': '2' } } }, 'http.headers.x-a', 'is given twice'],
  [{ http: { url, headers: { a: '{{secret}}' } } }, 'http.headers.a', 'is not a template'],
  ...['Host', 'content-length', 'Transfer-Encoding', 'connection', 'Upgrade', 'keep-alive', 'te', 'expect'].map(
    (name): [Record<string, unknown>, string, string] => [
      { http: { url, headers: { [name]: 'x' } } },
      `http.headers.${name}`,
      'is set by the connection',
    ],
  ),
  ...['Idempotency-Key', 'belfry-run-id', 'Belfry-Anything', 'webhook-id', 'Webhook-Signature'].map(
    (name): [Record<string, unknown>, string, string] => [
      { http: { url, headers: { [name]: 'x' } } },
      `http.headers.${name}`,
      'is set by Belfry',
    ],
  ),
  [{ http: { url, body: { a: '{{attemp}}' } } }, 'http.body.a', 'is not a template', '{{attempt}}'],
  [{ http: { url, body: ['{{#each}}'] } }, 'http.body[0]', 'a payload may hold any text'],
  [{ http: { url, body: 'a\0b' } }, 'http.body', 'contains a NUL'],
  [{ http: { url, body: { a: 'a\0b' } } }, 'http.body.a', 'contains a NUL'],
  [{ http: { url, body: { a: 1n } } }, 'http.body.a', 'is a bigint'],
  [{ http: { url, body: { base64: 'not base64' } } }, 'http.body.base64', 'is not base64'],
  [{ http: { url, method: 'GET', body: 'x' } }, 'http.body', 'a GET request has no body'],
  [{ http: { url, method: 'head', body: 'x' } }, 'http.body', 'a HEAD request has no body'],
  [{ http: { url, method: 'GET' }, payload: 1 }, 'payload', 'a GET request has none'],
  [{ http: { url, method: 'GET' }, payloadRef: stored }, 'payloadRef', 'a GET request has none'],
  [{ http: { url, body: 1 }, payload: 1 }, 'payload', 'cannot stand beside http.body'],
  [{ http: { url, body: 1 }, payloadRef: stored }, 'payloadRef', 'cannot stand beside http.body'],
  [{ http: { url }, payloadRef: 's3://bucket/key' }, 'payloadRef', 'must be a payload that was stored here'],
  [{ queue: 'q', payloadRef: 'r'.repeat(2_049) }, 'payloadRef', 'at most 2048'],
  [{ http: { url, auth: {} } }, 'http.auth.tokenUrl', 'is missing'],
  [{ http: { url, auth: { type: 'basic' } } }, 'http.auth.type', 'must be one of oauth2'],
  [{ http: { url, auth: { tokenUrl: 'x' } } }, 'http.auth.tokenUrl', 'is not a URL'],
  [{ http: { url, auth: auth({ tokenUrl: `${url}/{{runId}}` }) } }, 'http.auth.tokenUrl', 'may not hold templates'],
  [{ http: { url, auth: auth({ clientSecret: '{{secert:a}}' }) } }, 'http.auth.clientSecret', 'is not a template'],
  [{ http: { url, auth: auth({ clientSecret: '[redacted]' }) } }, 'http.auth.clientSecret', 'is what views show'],
  [{ http: { url, auth: auth({}), headers: { AUTHORIZATION: 'x' } } }, 'http.auth', 'beside an authorization header'],
  [{ http: { url, retryOn: '404' } }, 'http.retryOn', 'must be a list'],
  [{ http: { url, retryOn: ['100'] } }, 'http.retryOn[0]', 'must be a status from 200'],
  [{ http: { url, retryOn: ['40x'] } }, 'http.retryOn[0]', 'or a class such as "4xx"'],
  [{ http: { url, retryOn: ['404'], failOn: ['404'] } }, 'http.failOn[0]', '404 stands in retryOn, too'],
  [{}, 'queue', 'is missing: a job needs http, a queue, or a payload'],
]

function auth(rest: Record<string, unknown>): Record<string, unknown> {
  return { tokenUrl: 'https://login.example.com/', clientId: 'a', clientSecret: 'b', ...rest }
}

test.for(cases.map(([job, path, message, suggestion]) => ({ job, path, message, suggestion })))(
  'a mistake at $path is named: $message',
  ({ job, path, message, suggestion }) => {
    const { code, complaints } = refused(job)
    expect(code).toBe('invalid_job')
    const found = complaints.find((complaint) => complaint.path === path && complaint.message.includes(message))
    expect(found, JSON.stringify(complaints)).toBeDefined()
    if (suggestion !== undefined) expect(found?.suggestion).toBe(suggestion)
  },
)

test('whatever is given as a call, the answer is a job that can be written, or a BelfryError', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(url, 'https://', '{{', '}}', '{{runId}}', '\0', '\ud800', 'GET'),
  )
  const value = fc.oneof(fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true }), text)
  const fields = { url: text, method: value, headers: fc.dictionary(text, value), body: value, auth: value }
  const http = fc.oneof(
    value,
    fc.record({ ...fields, succeedOn: value, failOn: fc.array(value) }, { requiredKeys: [] }),
  )
  fc.assert(
    fc.property(http, value, (call, payload) => {
      try {
        const { definitionJson } = understand({ http: call, payload })
        expect(JSON.stringify(JSON.parse(definitionJson))).toBe(definitionJson)
      } catch (error) {
        expect(error).toBeInstanceOf(BelfryError)
      }
    }),
    { numRuns: 2_000 },
  )
})

test('a body that is too large is told to be stored', () => {
  expect(refused({ http: { url, body: { a: 'x'.repeat(262_144) } } }).code).toBe('payload_too_large')
  expect(refused({ http: { url, body: 'x'.repeat(262_145) } }).code).toBe('payload_too_large')
  expect(targetOf({ url, body: 'x'.repeat(262_000) })).toBeDefined()
})

const round: [string, Record<string, unknown>][] = [
  ['a bare call', { http: { url } }],
  ['a call with a queue', { http: { url, method: 'GET' }, queue: 'hooks' }],
  ['JSON', { http: { url, body: { a: ['{{runId}}'] } } }],
  ['null', { http: { url, body: null } }],
  ['text', { http: { url, body: 'text' } }],
  ['bytes', { http: { url, body: { base64: 'AP+A' } } }],
  ['a stored payload', { http: { url }, payloadRef: stored, timeout: '5m' }],
  ['all', { http: { url, headers: { a: 'b' }, auth: auth({ scope: 's' }), failOn: ['5xx'] }, payload: { a: 1 } }],
]

test.for(round)('a definition with %s can be written as a job that means the same', ([, job]) => {
  const { definition, definitionJson } = understand(job)
  expect(understand(inputOf(definition, null)).definitionJson).toBe(definitionJson)
})

test('an update replaces the call, or takes it away with its queue', () => {
  const { definitionJson } = understand({ http: { url, headers: { a: 'b' } }, payload: 1 })
  const at = { now, nominalAt: null }
  const moved = mergeUpdate(definitionJson, { http: { url: `${url}/2` } }, at)
  expect(moved.definition).toEqual({ queue: 'http', http: { url: `${url}/2` }, payload: 1 })
  const away = mergeUpdate(definitionJson, { http: null }, at)
  expect(away.definition).toEqual({ queue: 'default', payload: 1 })
  expect(away.timeoutMs).toBe(300_000)
  const back = mergeUpdate(away.definitionJson, { queue: null, http: { url } }, at)
  expect(back.definition).toEqual({ queue: 'http', http: { url }, payload: 1 })
})

test('a view shows a call as it was written, and no secret of its own', () => {
  const shownOf = (http: unknown) => shownHttp((understand({ http }).definition as Definition).http as HttpTarget)
  expect(shownOf({ url, body: 'text' })).toEqual({ url, body: 'text' })
  expect(shownOf({ url, auth: auth({}) })).toEqual({ url, auth: auth({ clientSecret: '[redacted]' }) })
  const named = auth({ clientSecret: '{{secret:s}}' })
  expect(shownOf({ url, auth: named })).toEqual({ url, auth: named })
})
