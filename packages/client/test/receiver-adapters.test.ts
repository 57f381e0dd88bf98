import { createServer, type RequestListener, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import {
  expressReceiver,
  fail,
  fastifyReceiver,
  honoReceiver,
  later,
  nextReceiver,
  type ReceiverHandler,
  type ReceiverOptions,
  retryIn,
} from '../src/receiver/index.ts'
import { newSecret, RUN_ID, signedHeaders } from './receiver-signing.ts'

interface Sent {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

interface Sending {
  method?: string
  headers: Record<string, string>
  body?: string | Uint8Array
}

type Send = (sending: Sending) => Promise<Sent>
type Framework = (options: ReceiverOptions, handler: ReceiverHandler) => Promise<Send>

/** Over a real connection, since what a framework does with bytes is what is being tested. */
async function served(listener: RequestListener): Promise<Send> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return caller((server.address() as AddressInfo).port)
}

function caller(port: number): Send {
  return ({ method = 'POST', headers, body }) =>
    new Promise((resolve, reject) => {
      const call = send({ port, host: '127.0.0.1', path: '/emails', method, headers, agent: false }, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }))
      })
      call.on('error', reject)
      call.end(body)
    })
}

/** A Web handler behind Node's server, as Next and Hono's own servers put it there. */
function webServed(handle: (request: Request) => Response | Promise<Response>): Promise<Send> {
  return served(async (incoming, outgoing) => {
    const hasBody = incoming.method !== 'GET' && incoming.method !== 'HEAD'
    const request = new Request(`http://127.0.0.1${incoming.url}`, {
      method: incoming.method as string,
      headers: incoming.headers as Record<string, string>,
      ...(hasBody ? { body: incoming as unknown as ReadableStream, duplex: 'half' } : {}),
    } as RequestInit)
    const response = await handle(request)
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    outgoing.end(Buffer.from(await response.arrayBuffer()))
  })
}

const FRAMEWORKS: Record<string, Framework> = {
  'Express with express.raw': async (options, handler) => {
    const app = express()
    app.all('/emails', express.raw({ type: '*/*', limit: '10mb' }), expressReceiver(options, handler))
    return served(app)
  },
  'Express without any parser': async (options, handler) => {
    const app = express()
    app.all('/emails', expressReceiver(options, handler))
    return served(app)
  },
  'node:http': async (options, handler) => served(expressReceiver(options, handler)),
  Fastify: async (options, handler) => {
    const app = fastify()
    app.post('/elsewhere', async ({ body }) => body)
    await app.register(fastifyReceiver(options, handler), { prefix: '/emails' })
    await app.listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(() => app.close())
    return caller((app.server.address() as AddressInfo).port)
  },
  Hono: async (options, handler) => {
    const app = new Hono()
    app.all('/emails', honoReceiver(options, handler))
    return webServed((request) => app.fetch(request))
  },
  'Hono behind a middleware that reads the body': async (options, handler) => {
    const app = new Hono()
    app.use(async (context, next) => {
      await context.req.text()
      await next()
    })
    app.all('/emails', honoReceiver(options, handler))
    return webServed((request) => app.fetch(request))
  },
  'a Next handler': async (options, handler) => webServed(nextReceiver(options, handler)),
}

const all = Object.entries(FRAMEWORKS)

async function setup(framework: Framework, handler: ReceiverHandler, more: Partial<ReceiverOptions> = {}) {
  const secret = newSecret()
  const errors: unknown[] = []
  const call = await framework({ secret, onError: (error) => errors.push(error), ...more }, handler)
  /** As Belfry would call. */
  const signed = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
    call({ headers: { ...signedHeaders([secret], body), ...headers }, body })
  return { secret, call, signed, errors }
}

test.each(all)('%s: the handler gets the run and the bytes that were signed', async (_, framework) => {
  const bodies: string[] = []
  const t = await setup(framework, async (call) => {
    bodies.push(call.text())
    return { did: call.runId, attempt: call.attempt }
  })
  // White space and the order of names would not survive being parsed and written again.
  for (const [body, type] of [
    ['{ "b":1,\n "a" : "straße" }', 'application/json'],
    ['not json', 'application/json'],
    ['a=1&b=2', 'application/x-www-form-urlencoded'],
    ['plain', 'text/plain; charset=utf-8'],
    ['<x/>', 'application/xml'],
  ] as const) {
    const { status, text, headers } = await t.signed(body, { 'content-type': type })
    expect({ status, text }).toEqual({ status: 200, text: JSON.stringify({ did: RUN_ID, attempt: 1 }) })
    expect(headers['content-type']).toMatch(/^application\/json/)
    expect(bodies.pop()).toBe(body)
  }
  expect(t.errors).toEqual([])
})

test.each(all)('%s: calls without a body, of any method, and large ones come through', async (_, framework) => {
  const lengths: number[] = []
  const t = await setup(framework, (call) => void lengths.push(call.body.length))
  const { 'content-type': _type, ...headers } = signedHeaders([t.secret], '')
  for (const method of ['GET', 'POST', 'DELETE']) expect((await t.call({ method, headers })).status).toBe(204)
  const large = new Uint8Array(3 * 1024 * 1024).fill(7)
  expect((await t.signed(large, { 'content-type': 'application/octet-stream' })).status).toBe(204)
  expect(lengths).toEqual([0, 0, 0, large.length])
})

test.each(all)('%s: what is not from Belfry never reaches the handler', async (_, framework) => {
  const t = await setup(framework, () => {
    throw new Error('must not be called')
  })
  const foreign = signedHeaders([newSecret()], '{}')
  const old = signedHeaders([t.secret], '{}', { at: Date.now() - 3_600_000 })
  const answers = [
    await t.call({ headers: { 'content-type': 'application/json' }, body: '{}' }),
    await t.call({ headers: foreign, body: '{}' }),
    await t.call({ headers: old, body: '{}' }),
    await t.call({ headers: signedHeaders([t.secret], '{}'), body: '{ }' }),
  ]
  expect(answers.map(({ status, text }) => [status, JSON.parse(text).error.split(':')[0]])).toEqual([
    [400, 'missing_header'],
    [401, 'wrong_signature'],
    [408, 'too_old'],
    [401, 'wrong_signature'],
  ])
  expect(t.errors).toHaveLength(4)
})

test.each(all)('%s: what the handler says is said so that Belfry understands', async (_, framework) => {
  const does: Record<string, () => unknown> = {
    later,
    wait: () => retryIn(90, 'closed until noon'),
    refuse: () => {
      throw fail('no such user')
    },
    break: () => {
      throw new Error('no mail server')
    },
  }
  const t = await setup(framework, (call) => does[call.text()]?.())
  expect(await t.signed('later')).toMatchObject({ status: 202, headers: { 'belfry-callback': 'wait' }, text: '' })
  expect(await t.signed('wait')).toMatchObject({
    status: 429,
    headers: { 'retry-after': '90' },
    text: '{"error":"closed until noon"}',
  })
  expect(await t.signed('refuse')).toMatchObject({ status: 422, text: '{"error":"no such user"}' })
  expect(await t.signed('break')).toMatchObject({ status: 500, text: '{"error":"no mail server"}' })
  expect(t.errors).toMatchObject([{ message: 'no mail server' }])
})

test.each(all)('%s: a body that is too large is refused', async (_, framework) => {
  const t = await setup(framework, () => 'never', { maxBytes: 1_000 })
  // Fastify refuses it by itself, before the receiver is asked.
  expect((await t.signed('x'.repeat(1_001))).status).toBe(413)
  expect((await t.signed('x'.repeat(1_000))).status).toBe(200)
})

test('a body that Express has parsed already is a mistake that is told', async () => {
  const t = await setup(
    async (options, handler) => {
      const app = express()
      app.use(express.json())
      app.post('/emails', expressReceiver(options, handler))
      return served(app)
    },
    () => 'never',
  )
  const { status, text } = await t.signed('{"a":1}')
  expect({ status, text }).toMatchObject({ status: 500, text: expect.stringContaining('body_not_raw') })
})

test('a body that was read before a Next handler is a mistake that is told', async () => {
  const secret = newSecret()
  const request = new Request('http://127.0.0.1/', {
    method: 'POST',
    headers: signedHeaders([secret], '{}'),
    body: '{}',
  })
  await request.text()
  const answer = await nextReceiver({ secret }, () => 'never')(request)
  expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining('body_not_raw')])
})

test("Fastify keeps its parsers outside the receiver's scope", async () => {
  const app = fastify()
  app.post('/elsewhere', async ({ body }) => body)
  await app.register(
    fastifyReceiver({ secret: newSecret() }, () => 'never'),
    { prefix: '/emails' },
  )
  const answer = await app.inject({ method: 'POST', url: '/elsewhere', payload: { parsed: true } })
  expect(answer.json()).toEqual({ parsed: true })
  await app.close()
})

test('a callback outside the allowed origin is refused', async () => {
  const t = await setup(FRAMEWORKS['node:http'] as Framework, () => 'fine', {
    callbackOrigin: 'https://belfry.example.com',
  })
  expect((await t.signed('{}')).status).toBe(200)
  for (const url of ['https://evil.example/v1/callbacks/t', 'https://belfry.example.com.evil.example/', 'nonsense']) {
    expect(await t.signed('{}', { 'belfry-callback-url': url })).toMatchObject({
      status: 403,
      text: expect.stringContaining('foreign_callback'),
    })
  }
})

test('a log that throws changes no answer', async () => {
  const t = await setup(
    FRAMEWORKS['node:http'] as Framework,
    () => {
      throw new Error('the cause')
    },
    {
      onError: () => {
        throw new Error('the log')
      },
    },
  )
  expect(await t.signed('{}')).toMatchObject({ status: 500, text: '{"error":"the cause"}' })
})
