import { BelfryApiError } from '../errors.ts'
import { pause } from '../runtime/runtime.ts'
import type { CallOptions } from './lease-calls.ts'
import type { Logger } from './logger.ts'
import type { WorkerRuntime } from './worker-runtime.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000
const PROBE_MS = 5_000
/** So often a call may fail before it is worth a line that it does. */
const MANY_TRIES = 5
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
  retries?: (error: unknown, tries: number) => boolean
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
        return await call({ timeoutMs, signal, retries: 0 })
      } catch (error) {
        if (signal.aborted || !retries(error, tries)) throw error
        if (isAway(error)) this.#miss(error)
        if (tries === (isAway(error) || isBusy(error) ? MANY_TRIES : 1)) this.#sayFailing(error)
        await pause(this.#deps.runtime, this.#pauseMs(error, tries), signal)
        await this.#untilBack(signal)
      }
    }
  }

  end(): void {
    this.#ended.abort()
    this.#wake()
  }

  #miss(error: unknown): void {
    if (this.#lostAt !== null || this.#ended.signal.aborted) return
    this.#lostAt = this.#deps.runtime.monotonicMs()
    void this.#look(error)
  }

  /** Ends when the server has answered. One call that fails while others get through is not worth a line. */
  async #look(missed: unknown): Promise<void> {
    const { runtime, logger, probe } = this.#deps
    const { signal } = this.#ended
    let tries = 0
    while (!signal.aborted && !(await this.#answers(() => probe({ timeoutMs: PROBE_MS, signal, retries: 0 })))) {
      if (signal.aborted) return
      if (++tries === 1) logger.warn('the connection to Belfry was lost', { error: wordsOf(missed) })
      await pause(runtime, this.#pauseMs(missed, tries), signal).catch(() => {})
    }
    if (signal.aborted) return
    const afterMs = Math.round(runtime.monotonicMs() - (this.#lostAt as number))
    this.#lostAt = null
    if (tries > 0) logger.info('the connection to Belfry is back', { afterMs })
    this.#wake()
  }

  /** Any answer of its own shows that it is there. */
  async #answers(probe: () => Promise<void>): Promise<boolean> {
    try {
      await probe()
      return true
    } catch (error) {
      return !isAway(error)
    }
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

  #sayFailing(error: unknown): void {
    this.#deps.logger.error('a call of the worker keeps failing; it is repeated', { error: wordsOf(error) })
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

/** The server stumbled over something: perhaps over what this very call holds. */
export function isStumble(error: unknown): boolean {
  return error instanceof BelfryApiError && error.status === 500
}

function isBusy(error: unknown): boolean {
  return error instanceof BelfryApiError && [408, 425, 429].includes(error.status)
}

export const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
