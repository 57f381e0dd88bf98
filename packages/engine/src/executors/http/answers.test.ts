import { expect, test } from 'vitest'
import { callTo, performed, startCaller, startReceiver } from '../../../test/http-target.ts'
import type { HttpTarget } from '../../job/definition.ts'

/** What a status means without a word from the job. */
const statuses: [status: number, kind: string, failureClass?: string, retryable?: boolean][] = [
  ...[200, 201, 202, 204, 299].map((status): [number, string] => [status, 'succeeded']),
  ...[408, 409, 425].map((status): [number, string, string, boolean] => [status, 'failed', 'http_4xx', true]),
  [429, 'failed', 'rate_limited', true],
  ...[500, 501, 502, 503, 504, 599].map((status): [number, string, string, boolean] => [
    status,
    'failed',
    'http_5xx',
    true,
  ]),
  ...[301, 302, 303, 307, 308, 400, 401, 403, 404, 410, 422, 451].map((status): [number, string, string, boolean] => [
    status,
    'failed',
    'http_4xx',
    false,
  ]),
]

test('every status has its meaning', async () => {
  const { url } = await startReceiver((request, response) => {
    response.statusCode = Number(request.url?.slice(1))
    response.setHeader('location', '/elsewhere')
    response.end('said')
  })
  const deps = startCaller()
  for (const [statusCode, kind, failureClass, retryable] of statuses) {
    const end = await performed(callTo(deps, { url: `${url}/${statusCode}` }), deps)
    const body = statusCode === 204 ? '' : 'said'
    const expected = kind === 'failed' ? { failureClass, retryable, written: true } : {}
    expect(end, `status ${statusCode}`).toMatchObject({ kind, statusCode, record: { body }, ...expected })
  }
})

test('redirects are not followed', async () => {
  const { url, received } = await startReceiver((_, response) => {
    response.writeHead(302, { location: '/elsewhere' }).end()
  })
  const deps = startCaller()
  const end = await performed(callTo(deps, { url }), deps)
  expect(end).toMatchObject({
    failureClass: 'http_4xx',
    retryable: false,
    record: { headers: { location: '/elsewhere' } },
  })
  expect(end).toMatchObject({ error: 'HTTP 302 Found: redirects are not followed' })
  expect(received).toHaveLength(1)
})

const overrides: [status: number, target: Partial<HttpTarget>, outcome: string][] = [
  [404, { succeedOn: ['404'] }, 'succeeded'],
  [404, { retryOn: ['4xx'] }, 'http_4xx again'],
  [404, { retryOn: ['4xx'], succeedOn: ['404'] }, 'succeeded'],
  [404, { retryOn: ['404'], succeedOn: ['4xx'] }, 'http_4xx again'],
  [403, { retryOn: ['404'], succeedOn: ['4xx'] }, 'succeeded'],
  [503, { failOn: ['5xx'] }, 'http_5xx for good'],
  [503, { failOn: ['5xx'], retryOn: ['503'] }, 'http_5xx again'],
  [429, { failOn: ['429'] }, 'rate_limited for good'],
  [204, { failOn: ['204'] }, 'http_4xx for good'],
  [200, { failOn: ['204'] }, 'succeeded'],
  [302, { succeedOn: ['3xx'] }, 'succeeded'],
]

test('a job may judge statuses otherwise, and a code wins over its class', async () => {
  const { url } = await startReceiver(
    (request, response) => void response.writeHead(Number(request.url?.slice(1))).end(),
  )
  const deps = startCaller()
  for (const [status, target, outcome] of overrides) {
    const end = await performed(callTo(deps, { url: `${url}/${status}`, ...target }), deps)
    const told = end.kind === 'failed' ? `${end.failureClass} ${end.retryable ? 'again' : 'for good'}` : end.kind
    expect(told, `${status} ${JSON.stringify(target)}`).toBe(outcome)
  }
})

test('Retry-After is heard as seconds or as a date, up to a day', async () => {
  let header = ''
  const { url } = await startReceiver((request, response) => {
    response.writeHead(Number(request.url?.slice(1)), { 'Retry-After': header }).end()
  })
  const deps = startCaller()
  const ask = async (text: string, status = 503): Promise<number | undefined> => {
    header = text
    const end = await performed(callTo(deps, { url: `${url}/${status}` }), deps)
    return end.kind === 'failed' ? end.retryAfterMs : Number.NaN
  }
  expect(await ask('7')).toBe(7_000)
  expect(await ask('0', 429)).toBe(0)
  expect(await ask('999999999')).toBe(86_400_000)
  const inAnHour = await ask(new Date(deps.clock.now() + 3_600_000).toUTCString())
  expect(Math.abs((inAnHour ?? 0) - 3_600_000)).toBeLessThan(5_000)
  expect(await ask('Thu, 01 Jan 1970 00:00:00 GMT')).toBe(0)
  for (const nonsense of ['soon', '-1', '1.5', '2026-01-01', '', '7 apples'])
    expect(await ask(nonsense)).toBeUndefined()
  expect(await ask('7', 404)).toBeUndefined()
})

test('a target that will call back is waited for, if it knows where to call', async () => {
  const { url } = await startReceiver(
    (_, response) => void response.writeHead(202, { 'Belfry-Callback': 'Wait' }).end(),
  )
  const deps = startCaller()
  const callbackUrl = 'https://belfry.example/cb'
  expect(await performed(callTo(deps, { url }, { callbackUrl }), deps)).toMatchObject({
    kind: 'waits',
    statusCode: 202,
  })
  expect(await performed(callTo(deps, { url }), deps)).toMatchObject({ kind: 'succeeded' })
  expect(await performed(callTo(deps, { url, failOn: ['202'] }, { callbackUrl }), deps)).toMatchObject({
    kind: 'failed',
  })
})

test('what is kept of an answer is bounded and can be stored', async () => {
  const { url } = await startReceiver((_, response) => {
    for (let i = 0; i < 80; i++) response.setHeader(`x-${i}`, 'v'.repeat(i === 0 ? 2_000 : 5))
    response.end(`a\0b${'€'.repeat(2_000)}`)
  })
  const deps = startCaller()
  const { record } = await performed(callTo(deps, { url }), deps)
  expect(Object.keys(record?.headers ?? {})).toHaveLength(50)
  expect(record?.headers['x-0']).toHaveLength(1_024)
  expect(record?.body).toBe(`a\uFFFDb${'€'.repeat(1_363)}`)
  expect(Buffer.byteLength(record?.body ?? '')).toBeLessThanOrEqual(4_096)
  expect(record?.truncated).toBe(true)
})

test('bytes that are no text are kept as valid text', async () => {
  const { url } = await startReceiver((_, response) => void response.end(Buffer.alloc(5_000, 0xff)))
  const deps = startCaller()
  const { record } = await performed(callTo(deps, { url }), deps)
  expect(Buffer.byteLength(record?.body ?? '')).toBeLessThanOrEqual(4_096)
  expect(record?.body.isWellFormed()).toBe(true)
  expect(record?.truncated).toBe(true)
})

test('a short answer is kept whole, with how long it took', async () => {
  const { url } = await startReceiver((_, response) => void response.end('fine'))
  const deps = startCaller()
  const first = await performed(callTo(deps, { url }), deps)
  expect(first.record).toMatchObject({ body: 'fine', truncated: false })
  expect(first.record?.timings.connectMs).toBeGreaterThanOrEqual(0)
  // A connection is taken up again one turn of the event loop later.
  await new Promise(setImmediate)
  const second = await performed(callTo(deps, { url }), deps)
  expect(second.record?.timings).not.toHaveProperty('connectMs')
  const { firstByteMs = -1, totalMs = -1 } = second.record?.timings ?? {}
  expect(totalMs).toBeGreaterThanOrEqual(firstByteMs)
  expect(firstByteMs).toBeGreaterThanOrEqual(0)
})
