import type { Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { callTo, performed, startCaller, startReceiver, startSocketServer } from '../../../test/http-target.ts'
import { ManualClock } from '../../runtime/clock.ts'
import type { Exchange } from './exchange.ts'
import type { HttpEnd } from './http-call.ts'

const network = { kind: 'failed', failureClass: 'network', retryable: true }

/** A server that does `then` once it has seen the beginning of a request. */
const afterRequest = (then: (socket: Socket) => void) =>
  startSocketServer((socket) => socket.once('data', () => then(socket)))

test('a refused connection never carried the request', async () => {
  const deps = startCaller()
  const { url } = await startSocketServer(() => {})
  const end = await performed(callTo(deps, { url: url.replace(/\d+$/, '9') }), deps)
  expect(end).toMatchObject({ failureClass: 'invalid_target' })
  const free = await performed(callTo(deps, { url: 'http://127.0.0.1:1024/' }), deps)
  expect(free).toMatchObject({ ...network, written: false, statusCode: null, response: null })
  expect(free).toMatchObject({ error: expect.stringContaining('ECONNREFUSED') })
})

test('a name that does not exist is a failure of the network', async () => {
  const resolve = async (hostname: string) => {
    throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' })
  }
  const deps = startCaller({ resolve })
  const end = await performed(callTo(deps, { url: 'http://nowhere.example/' }), deps)
  expect(end).toMatchObject({ ...network, written: false, error: 'getaddrinfo ENOTFOUND nowhere.example' })
  const none = startCaller({ resolve: async () => [] })
  expect(await performed(callTo(none, { url: 'http://nowhere.example/' }), none)).toMatchObject({
    ...network,
    written: false,
  })
})

test('a connection that breaks before the answer may have carried the request', async () => {
  const deps = startCaller()
  const closed = await afterRequest((socket) => socket.end())
  const reset = await afterRequest((socket) => socket.resetAndDestroy())
  for (const { url } of [closed, reset]) {
    const end = await performed(callTo(deps, { url }), deps)
    expect(end).toMatchObject({ ...network, written: true, statusCode: null, response: null })
  }
})

test('a connection that breaks within the answer leaves what came of it', async () => {
  const deps = startCaller()
  const { url } = await afterRequest((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf', () => socket.resetAndDestroy())
  })
  const end = await performed(callTo(deps, { url }), deps)
  expect(end).toMatchObject({ ...network, written: true })
  if (end.record !== null) expect(end).toMatchObject({ statusCode: 200 })
})

test.for([
  ['nonsense', 'SSH-2.0-OpenSSH\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
  ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
  ['endless headers', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(20_000)}\r\n`],
  ['one huge header', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(200_000)}\r\n\r\n`],
] as const)('an answer of %s is a failure of the network', async ([, answer]) => {
  const deps = startCaller()
  const { url } = await afterRequest((socket) => socket.write(answer))
  expect(await performed(callTo(deps, { url }), deps)).toMatchObject({ ...network, written: true })
})

test('hints before the answer are not the answer', async () => {
  const deps = startCaller()
  const { url } = await afterRequest((socket) =>
    socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine'),
  )
  expect(await performed(callTo(deps, { url }), deps)).toMatchObject({
    kind: 'succeeded',
    statusCode: 200,
    record: { body: 'fine' },
  })
})

test('an endless body is cut off, and its status counts', async () => {
  const deps = startCaller()
  let sent = 0
  const closed = signal()
  const { url } = await afterRequest((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    const chunk = Buffer.alloc(65_536, 'x')
    const pump = () => {
      while (!socket.destroyed && socket.write(chunk)) sent += chunk.length
    }
    socket.on('drain', pump)
    socket.on('close', closed.give)
    pump()
  })
  const end = await performed(callTo(deps, { url }), deps)
  expect(end).toMatchObject({
    kind: 'succeeded',
    statusCode: 200,
    record: { body: 'x'.repeat(4_096), truncated: true },
  })
  await closed.given
  expect(sent).toBeLessThan(32 * 1024 * 1024)
})

/** Performs against a target that sends `part` of its answer, and acts when that has arrived. */
async function interrupt(
  part: string,
  act: (clock: ManualClock, abort: AbortController) => void,
): Promise<{ end: HttpEnd; closed: boolean }> {
  const clock = new ManualClock()
  const abort = new AbortController()
  const deps = startCaller({ clock })
  const reached = signal()
  const closed = signal()
  const { url } = await afterRequest((socket) => {
    socket.on('close', closed.give)
    if (part !== '') socket.write(part)
    reached.give()
  })
  const opened = vi.spyOn(deps.transport, 'open')
  const performing = performed(callTo(deps, { url }, { deadline: clock.now() + 30_000, signal: abort.signal }), deps)
  await reached.given
  const exchange = opened.mock.results[0]?.value as Exchange
  while (part !== '' && exchange.chunks.length === 0) await new Promise(setImmediate)
  act(clock, abort)
  const end = await performing
  await closed.given
  return { end, closed: true }
}

function signal(): { given: Promise<void>; give(): void } {
  let give = () => {}
  const given = new Promise<void>((resolve) => {
    give = resolve
  })
  return { given, give }
}

const HEADERS = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n'

test('a target that is slow with its headers runs into the deadline', async () => {
  const { end, closed } = await interrupt('', (clock) => clock.advance(30_000))
  expect(end).toMatchObject({
    failureClass: 'timeout',
    retryable: true,
    written: true,
    statusCode: null,
    response: null,
  })
  expect(closed).toBe(true)
})

test('a target that is slow with its body runs into the deadline, and its status is kept', async () => {
  const { end, closed } = await interrupt(`${HEADERS}half`, (clock) => clock.advance(30_000))
  expect(end).toMatchObject({ failureClass: 'timeout', retryable: true, written: true, statusCode: 200 })
  expect(end).toMatchObject({ record: { body: 'half' }, error: 'no complete answer within the timeout' })
  expect(closed).toBe(true)
})

test('nothing happens before the deadline', async () => {
  const { end } = await interrupt('', (clock, abort) => {
    clock.advance(29_999)
    abort.abort()
  })
  expect(end).toMatchObject({ failureClass: 'canceled', retryable: false, written: true })
})

test('a canceled call ends at once, and its connection with it', async () => {
  const { end, closed } = await interrupt(`${HEADERS}half`, (_, abort) => abort.abort())
  expect(end).toMatchObject({ failureClass: 'canceled', retryable: false, written: true })
  expect(closed).toBe(true)
})

test('a call that is over before it begins is never sent', async () => {
  const { url, received } = await startReceiver()
  const deps = startCaller()
  const late = await performed(callTo(deps, { url }, { deadline: deps.clock.now() }), deps)
  expect(late).toMatchObject({ failureClass: 'timeout', written: false })
  const canceled = await performed(callTo(deps, { url }, { signal: AbortSignal.abort() }), deps)
  expect(canceled).toMatchObject({ failureClass: 'canceled', written: false })
  expect(received).toEqual([])
})

test('the deadline holds while a name is being resolved, and what comes later is not sent', async () => {
  const { port, received } = await startReceiver()
  const clock = new ManualClock()
  const asked = signal()
  const answered = signal()
  const resolve = async () => {
    asked.give()
    await answered.given
    return [{ address: '127.0.0.1', family: 4 }]
  }
  const deps = startCaller({ clock, resolve })
  const url = `http://slow.example:${port}/`
  const first = performed(callTo(deps, { url }, { deadline: clock.now() + 1_000 }), deps)
  await asked.given
  clock.advance(1_000)
  expect(await first).toMatchObject({ failureClass: 'timeout', written: false })
  answered.give()
  expect(await performed(callTo(deps, { url }, { attempt: 2 }), deps)).toMatchObject({ kind: 'succeeded' })
  expect(received.map(({ headers }) => headers['belfry-attempt'])).toEqual(['2'])
})

test('one target that hangs does not hold up another', async () => {
  const deps = startCaller({ connectionsPerOrigin: 2 })
  const hanging = await startSocketServer(() => {})
  const { url } = await startReceiver()
  const abort = new AbortController()
  const stuck = Array.from({ length: 10 }, () =>
    performed(callTo(deps, { url: hanging.url }, { signal: abort.signal }), deps),
  )
  const fine = await Promise.all(Array.from({ length: 20 }, () => performed(callTo(deps, { url }), deps)))
  expect(fine.every(({ kind }) => kind === 'succeeded')).toBe(true)
  abort.abort()
  const ends = await Promise.all(stuck)
  expect(ends.map((end) => end.kind === 'failed' && end.failureClass)).toEqual(Array(10).fill('canceled'))
  // Two were sent; the others still waited for a connection.
  expect(ends.filter((end) => end.kind === 'failed' && end.written)).toHaveLength(2)
})
