import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { DeadLetter, GetDeadLetters, PostDeadLettersRedrive } from '../wire.ts'

/** Runs that used up their attempts or failed for good. */
export class DeadLetters {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The latest first. */
  list(query: GetDeadLetters['query'] = {}, options?: CallOptions): Pages<DeadLetter> {
    return new Pages((cursor) => {
      const asked = cursor === undefined ? query : { ...query, cursor }
      return this.#transport.call('GET /v1/dead-letters', { query: asked }, options)
    })
  }

  get(runId: string, options?: CallOptions): Promise<DeadLetter> {
    return this.#transport.call('GET /v1/dead-letters/{runId}', { path: { runId } }, options)
  }

  /** Opens runs again: those of `runIds`, or up to 1,000 of a `filter`. */
  redrive(body: PostDeadLettersRedrive['body'], options?: CallOptions): Promise<PostDeadLettersRedrive['response']> {
    return this.#transport.call('POST /v1/dead-letters/redrive', { body }, options)
  }

  /** The dead letter goes, the run's history stays. */
  delete(runId: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/dead-letters/{runId}', { path: { runId } }, options)
  }
}
