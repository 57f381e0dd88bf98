import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { ApiKey, GetApiKeys, MadeApiKey, PostApiKeys, PostApiKeysByKeyIdRotate } from '../wire.ts'

/** Who may call the API. A key itself is shown once, when it is made. */
export class ApiKeys {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  create(body: PostApiKeys['body'], options?: CallOptions): Promise<MadeApiKey> {
    return this.#transport.call('POST /v1/api-keys', { body }, options)
  }

  list(query: GetApiKeys['query'] = {}, options?: CallOptions): Pages<ApiKey> {
    return new Pages((cursor) =>
      this.#transport.call('GET /v1/api-keys', { query: cursor === undefined ? query : { ...query, cursor } }, options),
    )
  }

  get(keyId: string, options?: CallOptions): Promise<ApiKey> {
    return this.#transport.call('GET /v1/api-keys/{keyId}', { path: { keyId } }, options)
  }

  /** Makes a key to take the place of this one, which is refused after a while. */
  rotate(
    keyId: string,
    body: NonNullable<PostApiKeysByKeyIdRotate['body']> = {},
    options?: CallOptions,
  ): Promise<MadeApiKey> {
    return this.#transport.call('POST /v1/api-keys/{keyId}/rotate', { path: { keyId }, body }, options)
  }

  /** It is refused from now on. */
  delete(keyId: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/api-keys/{keyId}', { path: { keyId } }, options)
  }
}
