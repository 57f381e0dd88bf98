import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { PostSigningKeysRotate, SigningKey } from '../wire.ts'

/** What requests to HTTP targets are signed with. */
export class SigningKeys {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(options?: CallOptions): Pages<SigningKey, { items: SigningKey[] }> {
    return new Pages(() => this.#transport.call('GET /v1/signing-keys', {}, options))
  }

  /** Makes a new one; the old one signs too for a while. */
  rotate(
    body: NonNullable<PostSigningKeysRotate['body']> = {},
    options?: CallOptions,
  ): Promise<PostSigningKeysRotate['response']> {
    return this.#transport.call('POST /v1/signing-keys/rotate', { body }, options)
  }
}
