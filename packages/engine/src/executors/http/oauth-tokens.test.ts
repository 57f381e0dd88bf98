import { expect, test } from 'vitest'
import { callTo, performed, type Received, startCaller, startReceiver } from '../../../test/http-target.ts'
import { ManualClock } from '../../runtime/clock.ts'

interface Settings {
  expiresIn?: number
  /** What the token endpoint answers instead of a token. */
  refusal?: (request: Received) => { status: number; body?: string; headers?: Record<string, string> } | null
}

/** A token endpoint that numbers its tokens, and a target that wants the newest. */
async function setup({ expiresIn = 3_600, refusal = () => null }: Settings = {}) {
  let issued = 0
  let wanted: string | null = null
  const endpoint = await startReceiver((_, response, request) => {
    const refused = refusal(request)
    if (refused) return void response.writeHead(refused.status, refused.headers).end(refused.body)
    response.end(JSON.stringify({ access_token: `token-${++issued}`, token_type: 'Bearer', expires_in: expiresIn }))
  })
  const target = await startReceiver((request, response) => {
    const isWanted = wanted === null || request.headers.authorization === `Bearer ${wanted}`
    response.writeHead(isWanted ? 200 : 401).end(`you sent ${request.headers.authorization}`)
  })
  const clock = new ManualClock()
  const deps = startCaller({ clock, secrets: { oauth: 'se:cret/ü', pass: 'p' } })
  const auth = { tokenUrl: `${endpoint.url}/token`, clientId: 'belfry', clientSecret: '{{secret:oauth}}' }
  const call = (rest: Partial<typeof auth> & { scope?: string; audience?: string } = {}, tenantId = 1) =>
    performed(callTo(deps, { url: target.url, auth: { ...auth, ...rest } }, { tenantId }), deps)
  const want = (token: string) => {
    wanted = token
  }
  const sent = () => target.received.map(({ headers }) => headers.authorization)
  return { call, clock, endpoint, sent, want }
}

test('a token is fetched with the client credentials and sent to the target', async () => {
  const t = await setup()
  const end = await t.call({ scope: 'read write', audience: 'https://api.example/' })
  expect(end).toMatchObject({ kind: 'succeeded' })
  expect(t.sent()).toEqual(['Bearer token-1'])
  const [request] = t.endpoint.received
  expect(request).toMatchObject({ method: 'POST', url: '/token' })
  expect(request?.headers['content-type']).toBe('application/x-www-form-urlencoded')
  const [id, secret] = String(Buffer.from(String(request?.headers.authorization).slice(6), 'base64')).split(':')
  expect([id, decodeURIComponent(secret ?? '')]).toEqual(['belfry', 'se:cret/ü'])
  expect(Object.fromEntries(new URLSearchParams(String(request?.body)))).toEqual({
    grant_type: 'client_credentials',
    scope: 'read write',
    audience: 'https://api.example/',
  })
})

test('a server that wants the secret in the body gets it there, and is asked right from then on', async () => {
  const t = await setup({ refusal: ({ headers }) => (headers.authorization ? { status: 401 } : null), expiresIn: 0 })
  expect(await t.call()).toMatchObject({ kind: 'succeeded' })
  expect(await t.call()).toMatchObject({ kind: 'succeeded' })
  const forms = t.endpoint.received.map(({ body }) => new URLSearchParams(String(body)).get('client_secret'))
  expect(forms).toEqual([null, 'se:cret/ü', 'se:cret/ü'])
})

test('calls that come together share one token, and later ones use it until 30 s before it expires', async () => {
  const t = await setup({ expiresIn: 60 })
  await Promise.all(Array.from({ length: 20 }, () => t.call()))
  t.clock.advance(29_999)
  await t.call()
  expect(t.endpoint.received).toHaveLength(1)
  t.clock.advance(1)
  await t.call()
  expect(t.endpoint.received).toHaveLength(2)
})

test('tokens are never shared between tenants, clients, scopes or endpoints', async () => {
  const t = await setup()
  await t.call()
  await t.call({}, 2)
  await t.call({ clientId: 'other' })
  await t.call({ clientSecret: '{{secret:pass}}' })
  await t.call({ scope: 'read' })
  await t.call({ audience: 'a' })
  expect(t.endpoint.received).toHaveLength(6)
  await t.call({ scope: 'read' })
  expect(t.endpoint.received).toHaveLength(6)
})

test('a token that the target turns down is replaced once', async () => {
  const t = await setup()
  await t.call()
  t.want('token-2')
  expect(await t.call()).toMatchObject({ kind: 'succeeded' })
  expect(t.sent()).toEqual(['Bearer token-1', 'Bearer token-1', 'Bearer token-2'])
  t.want('none')
  expect(await t.call()).toMatchObject({ failureClass: 'http_4xx', statusCode: 401, retryable: false })
  expect(t.endpoint.received).toHaveLength(3)
})

test('a fresh token that is turned down is not asked for again at once, and not kept', async () => {
  const t = await setup()
  t.want('none')
  expect(await t.call()).toMatchObject({ failureClass: 'http_4xx', statusCode: 401 })
  expect(t.endpoint.received).toHaveLength(1)
  t.want('token-2')
  expect(await t.call()).toMatchObject({ kind: 'succeeded' })
})

test.for([
  [500, undefined, { failureClass: 'http_5xx', retryable: true }],
  [429, { 'retry-after': '9' }, { failureClass: 'rate_limited', retryable: true, retryAfterMs: 9_000 }],
  [403, undefined, { failureClass: 'http_4xx', retryable: false }],
  [302, { location: '/x' }, { failureClass: 'http_4xx', retryable: false }],
] as const)(
  'a token endpoint that answers %s fails the call before the target is reached',
  async ([status, headers, end]) => {
    const body = '{"error": "invalid_client", "error_description": "se:cret/ü"}'
    const t = await setup({ refusal: () => ({ status, body, ...(headers && { headers }) }) })
    const failed = await t.call()
    expect(failed).toMatchObject({ ...end, written: false, statusCode: null, response: null })
    expect(failed).toMatchObject({
      error: expect.stringMatching(/^the token endpoint answered HTTP \d+ .*\(invalid_client\)$/),
    })
    expect(t.sent()).toEqual([])
  },
)

test.for(['', 'null', '[]', '{"access_token": 5}', '{"access_token": "a\\r\\nb: c"}', '{"access_token": ""}'])(
  'an endpoint that answers %s sent no token',
  async (body) => {
    const t = await setup({ refusal: () => ({ status: 200, body }) })
    expect(await t.call()).toMatchObject({ failureClass: 'network', retryable: true, written: false })
  },
)

test('neither the token nor the secret is kept', async () => {
  const t = await setup()
  const end = await t.call()
  expect(end.record?.body).toBe('you sent Bearer [access token]')
  expect(await t.call({ tokenUrl: 'http://127.0.0.1:1024/' })).toMatchObject({
    failureClass: 'network',
    written: false,
  })
})
