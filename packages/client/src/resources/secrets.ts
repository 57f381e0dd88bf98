import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { PutSecretsByName, Secret } from '../wire.ts'

/** What `{{secret:name}}` in HTTP targets stands for. A value is never read back. */
export class Secrets {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(options?: CallOptions): Pages<Secret, { items: Secret[] }> {
    return new Pages(() => this.#transport.call('GET /v1/secrets', {}, options))
  }

  get(name: string, options?: CallOptions): Promise<Secret> {
    return this.#transport.call('GET /v1/secrets/{name}', { path: { name } }, options)
  }

  put(name: string, value: string, options?: CallOptions): Promise<PutSecretsByName['response']> {
    return this.#transport.call('PUT /v1/secrets/{name}', { path: { name }, body: { value } }, options)
  }

  delete(name: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/secrets/{name}', { path: { name } }, options)
  }
}
