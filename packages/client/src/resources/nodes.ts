import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { Node } from '../wire.ts'

/** The Belfry processes that are there. */
export class Nodes {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(options?: CallOptions): Pages<Node, { items: Node[] }> {
    return new Pages(() => this.#transport.call('GET /v1/nodes', {}, options))
  }
}
