import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { Circuit, PostCircuitsByOriginReset } from '../wire.ts'

/** Origins whose runs wait because their calls fail. */
export class Circuits {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(options?: CallOptions): Pages<Circuit, { items: Circuit[] }> {
    return new Pages(() => this.#transport.call('GET /v1/circuits', {}, options))
  }

  /** Its runs go on at once. */
  reset(origin: string, options?: CallOptions): Promise<PostCircuitsByOriginReset['response']> {
    return this.#transport.call('POST /v1/circuits/{origin}/reset', { path: { origin } }, options)
  }
}
