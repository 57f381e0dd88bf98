import { type AddressInfo, createServer } from 'node:net'
import { type Api, answerAsks, headersOf } from './apart.ts'
import { percentile } from './statistics.ts'
import { EMPTY_ANSWER, type Message, openConnection, readMessages, requestText, statusOf } from './tiny-http.ts'

/**
 * The world outside of Belfry, in a process of its own: a target that answers every call at once, and callers of the API.
 * Both are here so that the time from a call to its effect is read from one clock.
 */

export type Ask =
  | { kind: 'listen' }
  | { kind: 'expect'; calls: number }
  | { kind: 'post'; api: Api; path: string; bodies: string[]; connections: number; total: number }
  | { kind: 'latency'; api: Api; targetUrl: string; warmUp: number; measured: number }

export type Told = { port: number } | { seconds: number } | { p50: number; p95: number; p99: number }

let calls = 0
let onCall: (message: Message) => void = () => {}

async function perform(ask: Ask): Promise<Told> {
  switch (ask.kind) {
    case 'listen':
      return { port: await listen() }
    case 'expect':
      return { seconds: await untilCalled(ask.calls) }
    case 'post':
      return { seconds: await postAll(ask) }
    case 'latency':
      return latencies(ask)
  }
}

function listen(): Promise<number> {
  const server = createServer((socket) => {
    socket.setNoDelay(true)
    socket.on('error', () => {})
    readMessages(socket, (message) => {
      calls++
      socket.write(EMPTY_ANSWER, 'latin1')
      onCall(message)
    })
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

/** From the first call until the last of `expected`, as the target sees them. */
function untilCalled(expected: number): Promise<number> {
  const before = calls
  let firstAt = 0
  return new Promise((resolve) => {
    onCall = () => {
      if (firstAt === 0) firstAt = performance.now()
      if (calls - before < expected) return
      onCall = () => {}
      resolve((performance.now() - firstAt) / 1_000)
    }
  })
}

/** Each connection sends its next request when the last was answered; every answer must be a 201. */
async function postAll({ api, path, bodies, connections, total }: Extract<Ask, { kind: 'post' }>): Promise<number> {
  const headers = headersOf(api)
  const requests = bodies.map((body) => requestText('POST', path, headers, body))
  let sent = 0
  const startedAt = performance.now()
  const caller = async () => {
    const connection = await openConnection(api.port)
    while (sent < total) {
      const answer = await connection.send(requests[sent++ % requests.length] as string)
      if (statusOf(answer) !== 201) throw new Error(`${path} answered ${answer.firstLine}: ${answer.body}`)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: connections }, caller))
  return (performance.now() - startedAt) / 1_000
}

/** From sending `POST /v1/jobs` until the target has the call. */
async function latencies({ api, targetUrl, warmUp, measured }: Extract<Ask, { kind: 'latency' }>): Promise<Told> {
  const connection = await openConnection(api.port)
  const headers = headersOf(api)
  const taken: number[] = []
  for (let round = 0; round < warmUp + measured; round++) {
    await new Promise((wake) => setTimeout(wake, Math.random() * 20))
    const arrived = new Promise<number>((resolve) => {
      onCall = () => resolve(performance.now())
    })
    const request = requestText('POST', '/v1/jobs', headers, JSON.stringify({ http: { url: `${targetUrl}/${round}` } }))
    const sentAt = performance.now()
    const answer = await connection.send(request)
    if (statusOf(answer) !== 201) throw new Error(`POST /v1/jobs answered ${answer.firstLine}: ${answer.body}`)
    const latency = (await arrived) - sentAt
    if (round >= warmUp) taken.push(latency)
  }
  connection.close()
  return { p50: percentile(taken, 0.5), p95: percentile(taken, 0.95), p99: percentile(taken, 0.99) }
}

answerAsks(perform)
