import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { HttpCall, HttpDeps, HttpEnd } from '../src/executors/http/http-call.ts'
import { httpDeps } from '../src/executors/http/http-deps.ts'
import { perform } from '../src/executors/http/perform.ts'
import type { ResponseRecord } from '../src/executors/http/response-record.ts'
import type { TransportOptions } from '../src/executors/http/transport.ts'
import type { HttpTarget } from '../src/job/definition.ts'
import { type Clock, SystemClock } from '../src/runtime/clock.ts'
import { systemRandom } from '../src/runtime/random.ts'

export interface Received {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: Buffer
}

/** An HTTP server that remembers whole requests and then answers them. */
export async function startReceiver(
  answer: (...args: [...Parameters<RequestListener>, Received]) => void = (_, response) => void response.end('fine'),
): Promise<{ url: string; port: number; received: Received[] }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const whole = { method, url, headers, body: Buffer.concat(chunks) }
      received.push(whole)
      answer(request, response, whole)
    })
  })
  onTestFinished(() => server.closeAllConnections())
  const port = await listen(server)
  return { url: `http://127.0.0.1:${port}`, port, received }
}

/** A server that does with its connections what it likes. */
export async function startSocketServer(onSocket: (socket: Socket) => void): Promise<{ url: string; port: number }> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    onSocket(socket)
  })
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  const port = await listen(server)
  return { url: `http://127.0.0.1:${port}`, port }
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

interface CallerOptions extends Partial<TransportOptions> {
  secrets?: Record<string, string>
  keys?: Buffer[]
  payloads?: Record<string, { bytes: Buffer; contentType: string }>
}

/** What `perform` needs, with secrets and keys from memory. */
export function startCaller(options: CallerOptions = {}): HttpDeps {
  const clock: Clock = options.clock ?? new SystemClock()
  const secrets = new Map(Object.entries(options.secrets ?? {}))
  const keys = (options.keys ?? [Buffer.from('a signing key of 24 byte')]).map((secret) => ({ secret }))
  const deps = httpDeps({
    allowPrivateTargets: true,
    ...options,
    clock,
    random: systemRandom,
    secrets: {
      resolve: async (_, names) => new Map([...secrets].filter(([name]) => names.includes(name))),
    },
    signingKeys: { known: () => keys, current: async () => keys },
    payloads: { get: async (_, ref) => options.payloads?.[ref] ?? null },
  })
  onTestFinished(() => deps.transport.close())
  return deps
}

export const RUN_ID = '01940000-0000-7000-8000-000000000001.m4x0000'

export function callTo({ clock, transport }: HttpDeps, target: HttpTarget, rest: Partial<HttpCall> = {}): HttpCall {
  return {
    target,
    url: transport.urls.of(target.url),
    payload: undefined,
    tenantId: 1,
    runId: RUN_ID,
    jobId: '01940000-0000-7000-8000-000000000001',
    nominalAt: Date.UTC(2026, 0, 15, 10),
    attempt: 3,
    deadline: clock.now() + 20_000,
    signal: null,
    announce: null,
    ...rest,
  }
}

/** How the call ended, with the record of the answer as who asks for the run sees it. */
export async function performed(call: HttpCall, deps: HttpDeps): Promise<HttpEnd & { record: ResponseRecord | null }> {
  const end = await new Promise<HttpEnd>((ended, threw) =>
    perform(call, deps, { ended, threw, unsaid: () => threw(new Error('its beginning was not said')) }),
  )
  return { ...end, record: end.response === null ? null : (JSON.parse(end.response) as ResponseRecord) }
}
