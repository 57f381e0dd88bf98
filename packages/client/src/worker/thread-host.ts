import { wordsOf } from './connection.ts'
import type { LeaseBoard } from './lease-board.ts'
import type { HeartbeatAnswer } from './lease-calls.ts'
import type { Logger } from './logger.ts'

interface ThreadHostDeps {
  board: LeaseBoard
  leaseMs: number
  workerId: string
  /** Where the server is, and what identifies the worker there. */
  address: { url: string; headers: Readonly<Record<string, string>> }
  logger: Logger
  onAnswer(answer: HeartbeatAnswer): void
}

interface Thread {
  terminate(): Promise<unknown>
}

/**
 * Starts the thread that renews leases while this one is blocked. Where there are no threads, or its file was left behind by
 * a bundler, the worker goes on without: then a handler that blocks for longer than a lease loses it.
 */
export class ThreadHost {
  readonly #deps: ThreadHostDeps
  #starting: Promise<Thread | null> | null = null

  constructor(deps: ThreadHostDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#starting ??= this.#start().catch((error: unknown) => this.#without(error))
  }

  async stop(): Promise<void> {
    this.#deps.board.stop()
    const thread = await this.#starting
    await thread?.terminate()
  }

  async #start(): Promise<Thread> {
    const { board, leaseMs, workerId, address, onAnswer } = this.#deps
    const { Worker } = await import('node:worker_threads')
    const thread = new Worker(new URL('./heartbeat-thread.mjs', import.meta.url), {
      name: 'belfry heartbeats',
      workerData: { memory: board.memory, slotCount: board.slotCount, leaseMs, workerId, ...address },
      // Those of the process may name what only the main thread can have.
      execArgv: [],
    })
    thread.unref()
    thread.on('message', (answer: HeartbeatAnswer) => onAnswer(answer))
    thread.on('error', (error) => this.#without(error))
    return thread
  }

  #without(error: unknown): null {
    this.#deps.logger.warn('heartbeats run without a thread of their own', { error: wordsOf(error) })
    return null
  }
}
