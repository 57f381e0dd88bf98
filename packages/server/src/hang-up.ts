import type { ServerResponse } from 'node:http'

/**
 * Tells whether the caller's connection closes before its answer: as much of an AbortSignal as the engine asks for, without what
 * making a real one for every call costs.
 */
export class HangUp {
  readonly #response: ServerResponse
  #isOver = false
  #listeners: (() => void)[] = []

  /** The response is closed when the connection is, not when the request has been read. */
  constructor(response: ServerResponse) {
    this.#response = response
    if (response.destroyed) this.#isOver = true
    else response.on('close', this.#onClose)
  }

  get aborted(): boolean {
    return this.#isOver
  }

  addEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.push(listener)
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((one) => one !== listener)
  }

  /** From here on it closes because it was answered. */
  end(): void {
    this.#response.off('close', this.#onClose)
  }

  readonly #onClose = (): void => {
    this.#isOver = true
    for (const listener of this.#listeners) listener()
  }
}
