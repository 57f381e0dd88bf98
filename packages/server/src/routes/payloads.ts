import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import { instant, noContent } from '../schemas/page.ts'
import { judgedBelow } from '../validation.ts'

const MAX_PAYLOAD_BYTES = 10_485_760
const MAX_TYPE_LENGTH = 255

const tags = ['Payloads']
const ref = Type.String({
  description: 'What `PUT /v1/payloads` answered.',
  examples: ['019a2f5e-7c10-7a3b-9d55-3f1c2b4a6d70'],
})
const params = Type.Object({ ref }, { additionalProperties: false })
// Bytes are no JSON, so there is nothing that a schema could check.
const bytes = judgedBelow<Buffer>(
  Type.Unsafe<Buffer>({ type: 'string', format: 'binary', description: 'Any bytes, up to 10 MiB.' }),
)

export function payloadRoutes(app: App): void {
  // Content types are taken as they are only here, so these routes have a place of their own.
  app.register(async (raw: App) => {
    raw.removeAllContentTypeParsers()
    raw.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_PAYLOAD_BYTES }, (_request, body, done) =>
      done(null, body),
    )
    putRoute(raw)
  })

  app.get(
    '/v1/payloads/:ref',
    {
      config: { scope: ['read', 'worker'] },
      schema: {
        tags,
        summary: 'Get the bytes of a payload, with the content type they came with',
        params,
        response: { 200: { description: 'The bytes.', content: { 'application/octet-stream': { schema: bytes } } } },
      },
    },
    async ({ tenant, params }, reply) => {
      const found = await tenant.payloads.get(params.ref)
      if (found === null) throw noPayload()
      // It may be a page of somebody's; a browser must not run it as one of ours.
      return reply
        .headers({ 'content-disposition': 'attachment', 'content-security-policy': 'sandbox' })
        .type(found.contentType)
        .send(found.bytes)
    },
  )

  app.delete(
    '/v1/payloads/:ref',
    {
      config: { scope: 'write' },
      schema: { tags, summary: 'Delete a payload', params, response: { 204: noContent } },
    },
    async ({ tenant, params }, reply) => {
      if (!(await tenant.payloads.delete(params.ref))) throw noPayload()
      return reply.status(204).send()
    },
  )
}

function putRoute(app: App): void {
  app.put(
    '/v1/payloads',
    {
      config: { scope: 'write' },
      bodyLimit: MAX_PAYLOAD_BYTES,
      schema: {
        tags,
        summary: 'Keep a payload apart, to name it in jobs as payloadRef',
        consumes: ['application/octet-stream'],
        body: { content: { 'application/octet-stream': { schema: bytes } } },
        response: {
          201: Type.Object({
            payloadRef: ref,
            size: Type.Integer(),
            expiresAt: instant('30 days after its last use.'),
          }),
        },
      },
    },
    async ({ tenant, body, headers }, reply) => {
      if (!Buffer.isBuffer(body) || body.length === 0)
        throw new BelfryError('invalid_request', 'the body is the payload, and there is none')
      const contentType = headers['content-type'] ?? 'application/octet-stream'
      if (contentType.length > MAX_TYPE_LENGTH)
        throw new BelfryError('unsupported_media_type', `the content type is longer than ${MAX_TYPE_LENGTH} characters`)
      return reply.status(201).send(await tenant.payloads.put(body, contentType))
    },
  )
}

const noPayload = (): BelfryError => new BelfryError('not_found', 'there is no such payload')
