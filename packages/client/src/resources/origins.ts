import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { GetOrigins, Origin, PutOriginsByOrigin } from '../wire.ts'

/** Origins of HTTP targets whose calls are limited. */
export class Origins {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(query: GetOrigins['query'] = {}, options?: CallOptions): Pages<Origin> {
    return new Pages((cursor) =>
      this.#transport.call('GET /v1/origins', { query: cursor === undefined ? query : { ...query, cursor } }, options),
    )
  }

  get(origin: string, options?: CallOptions): Promise<Origin> {
    return this.#transport.call('GET /v1/origins/{origin}', { path: { origin } }, options)
  }

  /** Replaces its limits; one that is left out is none. */
  put(origin: string, limits: PutOriginsByOrigin['body'], options?: CallOptions): Promise<Origin> {
    return this.#transport.call('PUT /v1/origins/{origin}', { path: { origin }, body: limits }, options)
  }

  delete(origin: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/origins/{origin}', { path: { origin } }, options)
  }
}
