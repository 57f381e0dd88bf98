import type { HeadersLike } from './header-of.ts'
import { DEFAULT_MAX_BYTES, type ReceiverHandler, type ReceiverOptions, receive } from './receive.ts'
import type { RawBody } from './received-call.ts'

interface FastifyRequest {
  headers: HeadersLike
  body: unknown
}

interface FastifyReply {
  code(status: number): unknown
  headers(values: Record<string, string>): unknown
  send(body: string): unknown
}

/** As much of a Fastify instance as the plugin needs, so that no version of it is depended on. */
export interface FastifyScope {
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    type: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    parser: (request: unknown, body: Buffer, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown
  all(path: string, handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>): unknown
}

/**
 * A plugin: `app.register(fastifyReceiver(options, handler), { prefix: '/emails' })`. Its scope gets every body as bytes,
 * whatever its type; the rest of the application keeps its parsers.
 */
export function fastifyReceiver(
  options: ReceiverOptions,
  handler: ReceiverHandler,
): (fastify: FastifyScope) => Promise<void> {
  return async (fastify) => {
    fastify.removeAllContentTypeParsers()
    const bodyLimit = options.maxBytes ?? DEFAULT_MAX_BYTES
    fastify.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit }, (_, body, done) => done(null, body))
    fastify.all('/', async ({ headers, body: parsed }, reply) => {
      const raw = { headers, readBody: async () => (parsed ?? '') as RawBody }
      const { status, headers: answered, body } = await receive(raw, options, handler)
      reply.code(status)
      reply.headers(answered)
      return reply.send(body)
    })
  }
}
