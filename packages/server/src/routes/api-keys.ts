import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import type { Caller } from '../auth.ts'
import { readDuration } from '../duration.ts'
import { apiKey, madeApiKey, newApiKey, tenantId } from '../schemas/access.ts'
import { noContent, pageOf, pageQuery } from '../schemas/page.ts'
import type { Service } from '../service.ts'
import { optionalBody } from '../validation.ts'
import { noTenant } from './tenants.ts'

const MAX_OVERLAP_MS = 30 * 86_400_000
const DEFAULT_OVERLAP = 'PT1H'

const tags = ['API keys']
const params = Type.Object(
  { keyId: Type.String({ maxLength: 100, description: 'The id of a key, not the key.' }) },
  { additionalProperties: false },
)

/** A tenant's admin key manages the keys of its own tenant, the installation's key all. */
export function apiKeyRoutes(app: App): void {
  app.post(
    '/v1/api-keys',
    {
      config: { scope: 'admin' },
      schema: { tags, summary: 'Make a key; it is shown once', body: newApiKey, response: { 201: madeApiKey } },
    },
    async ({ service, caller, body }, reply) => {
      const { tenantId = caller.tenantId, expiresAt, name, scopes } = body
      if (!caller.isInstallation && tenantId !== caller.tenantId) throw noTenant(tenantId)
      const expiry = expiresAt === undefined ? {} : { expiresAt: readExpiry(expiresAt) }
      const made = await service.admin.apiKeys.create({ tenantId, name, scopes, ...expiry }, caller.actor)
      return reply.status(201).send(made)
    },
  )

  app.get(
    '/v1/api-keys',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        summary: 'List keys, without the keys themselves',
        querystring: pageQuery({ tenantId: Type.Optional(tenantId) }),
        response: { 200: pageOf(apiKey) },
      },
    },
    async ({ service, caller, query: { tenantId, ...page } }) => {
      if (!caller.isInstallation && tenantId !== undefined && tenantId !== caller.tenantId)
        return { items: [], nextCursor: null }
      const of = caller.isInstallation ? (tenantId ?? null) : caller.tenantId
      return service.admin.apiKeys.list(of, page)
    },
  )

  app.get(
    '/v1/api-keys/:keyId',
    { config: { scope: 'admin' }, schema: { tags, summary: 'Get a key', params, response: { 200: apiKey } } },
    ({ service, caller, params }) => visibleKey(service, caller, params.keyId),
  )

  app.delete(
    '/v1/api-keys/:keyId',
    {
      config: { scope: 'admin' },
      schema: { tags, summary: 'Revoke a key', params, response: { 204: noContent } },
    },
    async ({ service, caller, params }, reply) => {
      await visibleKey(service, caller, params.keyId)
      await service.admin.apiKeys.revoke(params.keyId, caller.actor)
      return reply.status(204).send()
    },
  )

  app.post(
    '/v1/api-keys/:keyId/rotate',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        summary: 'Make a key to take the place of another, which is refused after a while',
        params,
        body: optionalBody(
          Type.Object(
            {
              overlap: Type.Optional(
                Type.String({
                  maxLength: 100,
                  description: 'How long both are valid; default an hour, at most 30 days.',
                  examples: ['PT1H', '7d'],
                }),
              ),
            },
            { additionalProperties: false },
          ),
        ),
        response: { 201: madeApiKey },
      },
    },
    async ({ service, caller, params, body }, reply) => {
      const overlapMs = readDuration('overlap', body?.overlap ?? DEFAULT_OVERLAP, MAX_OVERLAP_MS)
      await visibleKey(service, caller, params.keyId)
      return reply.status(201).send(await service.admin.apiKeys.rotate(params.keyId, { overlapMs }, caller.actor))
    },
  )
}

/** The same for a key of another tenant as for none. */
async function visibleKey({ admin }: Service, caller: Caller, id: string) {
  const key = await admin.apiKeys.get(id)
  if (key === null || (!caller.isInstallation && key.tenantId !== caller.tenantId))
    throw new BelfryError('not_found', 'there is no such key')
  return key
}

function readExpiry(text: string): Date {
  const expiresAt = new Date(text)
  if (!Number.isNaN(expiresAt.getTime())) return expiresAt
  const message = 'is not an instant'
  throw new BelfryError('invalid_request', `expiresAt ${message}`, { complaints: [{ path: 'expiresAt', message }] })
}
