import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { callTo, performed, RUN_ID, startCaller, startReceiver } from '../../../test/http-target.ts'

test('every request says which run it is for, and can be told from its repetition', async () => {
  const { url, received } = await startReceiver()
  const deps = startCaller()
  await performed(callTo(deps, { url: `${url}/hook?a=1` }, { callbackUrl: 'https://belfry.example/cb' }), deps)
  const [request] = received
  expect(request).toMatchObject({ method: 'POST', url: '/hook?a=1' })
  expect(request?.headers).toMatchObject({
    'idempotency-key': RUN_ID,
    'belfry-run-id': RUN_ID,
    'belfry-job-id': '01940000-0000-7000-8000-000000000001',
    'belfry-attempt': '3',
    'belfry-nominal-at': '2026-01-15T10:00:00.000Z',
    'belfry-callback-url': 'https://belfry.example/cb',
    'webhook-id': RUN_ID.replace('.', '_'),
    'user-agent': 'belfry/0.1',
    'content-length': '0',
  })
  expect(request?.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  expect(request?.headers['content-type']).toBeUndefined()
})

test('a given trace is carried on', async () => {
  const { url, received } = await startReceiver()
  const deps = startCaller()
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await performed(callTo(deps, { url }, { traceparent }), deps)
  await performed(callTo(deps, { url, headers: { Traceparent: traceparent } }), deps)
  expect(received.map(({ headers }) => headers.traceparent)).toEqual([traceparent, traceparent])
})

const bodies = [
  ['nothing', {}, undefined, '', undefined],
  ['the payload', {}, { n: 1, text: 'ü€🎉' }, '{"n":1,"text":"ü€🎉"}', 'application/json'],
  ['a payload of null', {}, null, 'null', 'application/json'],
  ['JSON', { body: { json: [1, 'two'] } }, undefined, '[1,"two"]', 'application/json'],
  ['text', { body: { text: 'grüße' } }, undefined, 'grüße', 'text/plain; charset=utf-8'],
  ['bytes', { body: { base64: 'AP+A' } }, undefined, '\0\xff\x80', 'application/octet-stream'],
  ['a large text', { body: { text: '€'.repeat(40_000) } }, undefined, '€'.repeat(40_000), 'text/plain; charset=utf-8'],
] as const

test.for(bodies)('%s is sent as the body, with its type and a signature over its bytes', async (body) => {
  const [, target, payload, expected, contentType] = body
  const keys = [Buffer.from('the newest key'), Buffer.alloc(100, 7)]
  const { url, received } = await startReceiver()
  const deps = startCaller({ keys })
  await performed(callTo(deps, { url, ...target }, { payload }), deps)
  const [request] = received
  const bytes = 'body' in target && 'base64' in target.body ? Buffer.from(expected, 'latin1') : Buffer.from(expected)
  expect(request?.body.equals(bytes)).toBe(true)
  expect(request?.headers['content-type']).toBe(contentType)
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = request?.headers ?? {}
  expect(Math.abs(Number(timestamp) - Date.now() / 1_000)).toBeLessThan(60)
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), bytes])
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  expect(signature).toBe(signatures.join(' '))
})

test('a stored payload is sent as it was stored', async () => {
  const { url, received } = await startReceiver()
  const deps = startCaller({ payloads: { pl_1: { bytes: Buffer.from([0, 1, 255]), contentType: 'image/x-tiny' } } })
  await performed(callTo(deps, { url }, { payloadRef: 'pl_1' }), deps)
  expect(received[0]?.body).toEqual(Buffer.from([0, 1, 255]))
  expect(received[0]?.headers['content-type']).toBe('image/x-tiny')
  expect(await performed(callTo(deps, { url }, { payloadRef: 'pl_2' }), deps)).toMatchObject({
    kind: 'failed',
    failureClass: 'invalid_target',
    retryable: false,
    error: 'there is no payload pl_2',
    written: false,
  })
})

test('any method, and headers as they were given', async () => {
  const { url, received } = await startReceiver()
  const deps = startCaller()
  const headers = { 'X-Own': 'a\tb', 'Content-Type': 'application/vnd.x+json', 'user-agent': 'mine/1' }
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND']) {
    await performed(callTo(deps, { url, method, headers }, { payload: { a: 1 } }), deps)
  }
  expect(received.map(({ method, body }) => `${method} ${body}`)).toEqual([
    'GET ',
    'HEAD ',
    'PUT {"a":1}',
    'DELETE {"a":1}',
    'PATCH {"a":1}',
    'OPTIONS {"a":1}',
    'PROPFIND {"a":1}',
  ])
  expect(received[2]?.headers).toMatchObject({
    'x-own': 'a\tb',
    'content-type': 'application/vnd.x+json',
    'user-agent': 'mine/1',
  })
})

test('templates are filled where they stand, fit for their place', async () => {
  const { url, received } = await startReceiver()
  const deps = startCaller({ secrets: { key: 'a/b?c="d"\\ü' } })
  const target = {
    url: `${url}/at/{{ nominalAt }}/{{secret:key}}?run={{runId}}&try={{attempt}}`,
    headers: { 'x-run': '{{runId}}/{{attempt}}' },
    body: { json: { '{{runId}}': ['{{secret:key}}', { deep: 'try {{attempt}}' }], n: 1 } },
  }
  await performed(callTo(deps, target), deps)
  await performed(callTo(deps, { url, body: { text: '{"k": "{{nominalAt}}"}' } }), deps)
  const [first, second] = received
  const secret = encodeURIComponent('a/b?c="d"\\ü')
  expect(first?.url).toBe(`/at/2026-01-15T10%3A00%3A00.000Z/${secret}?run=${RUN_ID}&try=3`)
  expect(first?.headers['x-run']).toBe(`${RUN_ID}/3`)
  expect(JSON.parse(String(first?.body))).toEqual({ '{{runId}}': ['a/b?c="d"\\ü', { deep: 'try 3' }], n: 1 })
  expect(String(second?.body)).toBe('{"k": "2026-01-15T10:00:00.000Z"}')
})

test('a payload is data: what looks like a template in it is sent as it is', async () => {
  const { url, received } = await startReceiver()
  const deps = startCaller({ secrets: { key: 'sesame' } })
  await performed(callTo(deps, { url }, { payload: { comment: '{{secret:key}}' } }), deps)
  expect(String(received[0]?.body)).toBe('{"comment":"{{secret:key}}"}')
})

test('a call whose secret is missing is not made, and says which', async () => {
  const { url, received } = await startReceiver()
  const deps = startCaller()
  const end = await performed(callTo(deps, { url, headers: { authorization: 'Bearer {{secret:api.key}}' } }), deps)
  expect(end).toMatchObject({ kind: 'failed', failureClass: 'invalid_target', retryable: false, written: false })
  expect(end).toMatchObject({ error: 'there is no secret "api.key"', statusCode: null, response: null })
  expect(received).toEqual([])
})

test('a secret cannot add a header', async () => {
  const { url, received } = await startReceiver()
  const deps = startCaller({ secrets: { key: 'x\r\nx-admin: 1' } })
  const end = await performed(callTo(deps, { url, headers: { authorization: '{{secret:key}}' } }), deps)
  expect(end).toMatchObject({ failureClass: 'invalid_target', retryable: false, written: false })
  expect(received).toEqual([])
})

test('secrets that a target repeats are not kept', async () => {
  const secret = 'ses"ame/very\\long'
  const { url } = await startReceiver((_, response, { url: path, headers }) => {
    response.setHeader('x-echo', `got ${headers['x-key']}`)
    response.setHeader('set-cookie', 'session=1')
    response.setHeader('x-auth-token', 'abc')
    response.statusCode = 500
    response.end(`${headers['x-key']} ${JSON.stringify({ key: headers['x-key'] })} ${path}`)
  })
  const deps = startCaller({ secrets: { key: secret } })
  const target = { url: `${url}/?k={{secret:key}}`, headers: { 'x-key': '{{secret:key}}' } }
  const end = await performed(callTo(deps, target), deps)
  expect(end).toMatchObject({ kind: 'failed', failureClass: 'http_5xx' })
  expect(end.record?.body).toBe('{{secret:key}} {"key":"{{secret:key}}"} /?k={{secret:key}}')
  expect(end.record?.headers['x-echo']).toBe('got {{secret:key}}')
  expect(JSON.stringify(end)).not.toMatch(/ses|session|abc/)
})

test('what one call may know and another may not is kept apart, also if the target says the same to both', async () => {
  const { url } = await startReceiver((_, response) => void response.setHeader('x-echo', 'sesame').end())
  const deps = startCaller({ secrets: { key: 'sesame' } })
  const kept: (string | undefined)[] = []
  for (const headers of [{}, { 'x-key': '{{secret:key}}' }, {}]) {
    kept.push((await performed(callTo(deps, { url, headers }), deps)).record?.headers['x-echo'])
    // A connection is taken up again one turn of the event loop later.
    await new Promise(setImmediate)
  }
  expect(kept).toEqual(['sesame', '{{secret:key}}', 'sesame'])
})

test('a secret that reaches over the end of what is kept leaves no part of itself', async () => {
  const secret = 'S'.repeat(300)
  const { url } = await startReceiver(
    (_, response) => void response.end(`${'x'.repeat(4_000)}${secret}${'T'.repeat(900)}`),
  )
  const deps = startCaller({ secrets: { key: secret } })
  const end = await performed(callTo(deps, { url, headers: { a: '{{secret:key}}' } }), deps)
  expect(end.record?.body).toBe(`${'x'.repeat(4_000)}{{secret:key}}`)
  expect(end.record?.truncated).toBe(true)
})
