import { BelfryError } from '@belfry/engine'
import { Type } from 'typebox'
import type { App } from '../app.ts'
import type { Caller } from '../auth.ts'
import { newTenant, tenant, tenantId, tenantPatch } from '../schemas/access.ts'
import { noContent, pageOf, pageQuery } from '../schemas/page.ts'

const tags = ['Tenants']
const params = Type.Object({ tenantId }, { additionalProperties: false })

/** A tenant's own admin key sees its tenant and no other; only the installation's key changes tenants. */
export function tenantRoutes(app: App): void {
  app.post(
    '/v1/tenants',
    {
      config: { scope: 'admin' },
      schema: { tags, summary: 'Make a tenant', body: newTenant, response: { 201: tenant } },
    },
    async ({ service, caller, body }, reply) => {
      mustBeInstallation(caller)
      return reply.status(201).send(await service.admin.tenants.create(body, caller.actor))
    },
  )

  app.get(
    '/v1/tenants',
    {
      config: { scope: 'admin' },
      schema: { tags, summary: 'List tenants', querystring: pageQuery({}), response: { 200: pageOf(tenant) } },
    },
    async ({ service, caller, query }) => {
      if (caller.isInstallation) return service.admin.tenants.list(query)
      return { items: [await service.admin.tenants.get(caller.tenantId)], nextCursor: null }
    },
  )

  app.get(
    '/v1/tenants/:tenantId',
    { config: { scope: 'admin' }, schema: { tags, summary: 'Get a tenant', params, response: { 200: tenant } } },
    ({ service, caller, params }) => {
      mustSee(caller, params.tenantId)
      return service.admin.tenants.get(params.tenantId)
    },
  )

  app.patch(
    '/v1/tenants/:tenantId',
    {
      config: { scope: 'admin' },
      schema: {
        tags,
        summary: 'Change tier, weight or quotas of a tenant',
        params,
        body: tenantPatch,
        response: { 200: tenant },
      },
    },
    ({ service, caller, params, body }) => {
      mustSee(caller, params.tenantId)
      mustBeInstallation(caller)
      return service.admin.tenants.update(params.tenantId, body, caller.actor)
    },
  )

  app.delete(
    '/v1/tenants/:tenantId',
    {
      config: { scope: 'admin' },
      schema: { tags, summary: 'Delete a tenant that has no jobs', params, response: { 204: noContent } },
    },
    async ({ service, caller, params }, reply) => {
      mustSee(caller, params.tenantId)
      mustBeInstallation(caller)
      await service.admin.tenants.delete(params.tenantId, caller.actor)
      return reply.status(204).send()
    },
  )
}

/** Said before anything is looked up: a foreign tenant and none are the same to whoever may not see it. */
function mustSee({ isInstallation, tenantId }: Caller, wanted: number): void {
  if (!isInstallation && wanted !== tenantId) throw noTenant(wanted)
}

function mustBeInstallation({ isInstallation }: Caller): void {
  if (!isInstallation) throw new BelfryError('forbidden', "only the installation's admin key changes tenants")
}

export const noTenant = (id: number): BelfryError => new BelfryError('not_found', `there is no tenant ${id}`)
