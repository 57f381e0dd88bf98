import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { GetTenants, PatchTenantsByTenantId, PostTenants, Tenant } from '../wire.ts'

/** Who owns jobs. Only the installation's own key changes tenants. */
export class Tenants {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  create(body: PostTenants['body'], options?: CallOptions): Promise<Tenant> {
    return this.#transport.call('POST /v1/tenants', { body }, options)
  }

  list(query: GetTenants['query'] = {}, options?: CallOptions): Pages<Tenant> {
    return new Pages((cursor) =>
      this.#transport.call('GET /v1/tenants', { query: cursor === undefined ? query : { ...query, cursor } }, options),
    )
  }

  get(tenantId: number, options?: CallOptions): Promise<Tenant> {
    return this.#transport.call('GET /v1/tenants/{tenantId}', { path: { tenantId } }, options)
  }

  update(tenantId: number, body: PatchTenantsByTenantId['body'], options?: CallOptions): Promise<Tenant> {
    return this.#transport.call('PATCH /v1/tenants/{tenantId}', { path: { tenantId }, body }, options)
  }

  /** Only one that has no jobs. */
  delete(tenantId: number, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/tenants/{tenantId}', { path: { tenantId } }, options)
  }
}
