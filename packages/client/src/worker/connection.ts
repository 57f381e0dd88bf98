import { BelfryApiError } from '../errors.ts'
import { pause } from '../runtime/runtime.ts'
import type { CallOptions } from './lease-calls.ts'
import type { Logger } from './logger.ts'
import type { WorkerRuntime } from './worker-runtime.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000
/** For answers that will hardly change by themselves: a key without the scope, a queue of the other kind. */
const LONGEST_REFUSED_PAUSE_MS = 30_000

interface ConnectionDeps {
  runtime: WorkerRuntime
  logger: Logger
  /** A quick call that tells whether the server is there; made again and again while it is not. */
  probe(options: CallOptions): Promise<void>
}

interface RepeatOptions {
  timeoutMs: number
  signal: AbortSignal
  /** Whether waiting may help; what is refused for its content is thrown. */
  retries?: (error: unknown) => boolean
}

/**
 * Repeats calls until they are answered, with backoff and full jitter. While the server is away one probe looks for it and
 * everybody else waits for that; it is said once that it is away and once that it is back.
 */
export class Connection {
  readonly #deps: ConnectionDeps
  readonly #ended = new AbortController()
  #lostAt: number | null = null
  #back: (() => void)[] = []
  #refused = new Set<string>()

  constructor(deps: ConnectionDeps) {
    this.#deps = deps
  }

  get isLost(): boolean {
    return this.#lostAt !== null
  }

  async repeat<Answer>(call: (options: CallOptions) => Promise<Answer>, options: RepeatOptions): Promise<Answer> {
    const { timeoutMs, signal, retries = mayPass } = options
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted()
      try {
        const answer = await call({ timeoutMs, signal, retries: 0 })
        this.#refused.clear()
        return answer
      } catch (error) {
        if (signal.aborted || !retries(error)) throw error
        if (isAway(error)) this.#lost(error)
        else this.#sayRefused(error)
        await pause(this.#deps.runtime, this.#pauseMs(error, tries), signal)
        await this.#untilBack(signal)
      }
    }
  }

  end(): void {
    this.#ended.abort()
    this.#wake()
  }

  #lost(error: unknown): void {
    if (this.#lostAt !== null || this.#ended.signal.aborted) return
    this.#lostAt = this.#deps.runtime.monotonicMs()
    this.#deps.logger.warn('the connection to Belfry was lost', { error: wordsOf(error) })
    void this.#look()
  }

  async #look(): Promise<void> {
    const { runtime, logger, probe } = this.#deps
    const { signal } = this.#ended
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        await probe({ timeoutMs: 5_000, signal, retries: 0 })
        break
      } catch (error) {
        // Any answer of its own shows that it is there.
        if (!signal.aborted && !isAway(error)) break
        await pause(runtime, this.#pauseMs(error, tries), signal).catch(() => {})
      }
    }
    if (signal.aborted) return
    const afterMs = Math.round(runtime.monotonicMs() - (this.#lostAt as number))
    this.#lostAt = null
    logger.info('the connection to Belfry is back', { afterMs })
    this.#wake()
  }

  #wake(): void {
    for (const wake of this.#back.splice(0)) wake()
  }

  async #untilBack(signal: AbortSignal): Promise<void> {
    if (!this.isLost || signal.aborted) return
    let wake = () => {}
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    this.#back.push(wake)
    signal.addEventListener('abort', wake, { once: true })
    await woken
    signal.removeEventListener('abort', wake)
  }

  #pauseMs(error: unknown, tries: number): number {
    const longest = isAway(error) || isBusy(error) ? LONGEST_PAUSE_MS : LONGEST_REFUSED_PAUSE_MS
    const ceiling = Math.min(longest, FIRST_PAUSE_MS * 2 ** Math.min(tries, 20))
    const wished = error instanceof BelfryApiError ? (error.retryAfterMs ?? 0) : 0
    return wished + Math.round(ceiling * this.#deps.runtime.chance())
  }

  #sayRefused(error: unknown): void {
    const words = wordsOf(error)
    if (isBusy(error) || this.#refused.has(words)) return
    this.#refused.add(words)
    this.#deps.logger.error('Belfry refuses a call of the worker; it is tried again now and then', { error: words })
  }
}

/** The server does not answer, or cannot do anything just now. */
export function isAway(error: unknown): boolean {
  return !(error instanceof BelfryApiError) || error.status >= 500
}

/** Waiting may help: nobody there, too many calls, or a key that is being replaced. */
export function mayPass(error: unknown): boolean {
  return isAway(error) || isBusy(error) || [401, 403].includes((error as BelfryApiError).status)
}

function isBusy(error: unknown): boolean {
  return error instanceof BelfryApiError && [408, 425, 429].includes(error.status)
}

export const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
