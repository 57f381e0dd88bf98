import { BelfryApiError } from '../errors.ts'
import { type Connection, mayPass, wordsOf } from './connection.ts'
import type { CallOptions } from './lease-calls.ts'
import type { Logger } from './logger.ts'

export interface OutboxItem {
  bytes: number
}

interface OutboxOptions<Item> {
  /** One call; throws as the client does. */
  send(items: Item[], options: CallOptions): Promise<void>
  /** The server will not take this one: another form of it, or null if there is none and it is dropped. */
  simplify(item: Item, error: unknown): Item | null
  /** Whether it is still worth sending. */
  isWanted(item: Item): boolean
  /** Sent, or given up. */
  onGone(item: Item): void
  connection: Connection
  logger: Logger
}

const MAX_ITEMS = 1_000
const MAX_BYTES = 4_194_304
const TIMEOUT_MS = 30_000
const LANES = 2
/** The second lane is for many: a few wait for the first and go along with the next call. */
const WORTH_A_LANE = 250

/**
 * Carries items to the server in batches and repeats a batch until it was answered. A free lane takes at once what there is;
 * while it is busy the next batch grows. A batch that is refused is halved down to the guilty item.
 */
export class Outbox<Item extends OutboxItem> {
  readonly #options: OutboxOptions<Item>
  readonly #ended = new AbortController()
  #pending: Item[] = []
  #underWay = 0
  #busy = 0
  #planned = false
  #idle: (() => void)[] = []

  constructor(options: OutboxOptions<Item>) {
    this.#options = options
  }

  get unsent(): number {
    return this.#pending.length + this.#underWay
  }

  push(item: Item): void {
    this.#pending.push(item)
    this.#plan()
  }

  /** Ends when everything pushed so far is gone. */
  async drained(): Promise<void> {
    if (this.unsent === 0) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Gives up what is not sent. */
  end(): void {
    this.#ended.abort()
  }

  /** Not at once: what else is pushed in this turn of the event loop goes along. */
  #plan(): void {
    if (this.#planned || this.#busy >= LANES) return
    if (this.#busy > 0 && this.#pending.length < WORTH_A_LANE) return
    this.#planned = true
    setImmediate(() => {
      this.#planned = false
      this.#start()
    })
  }

  #start(): void {
    while (this.#pending.length > 0 && (this.#busy === 0 || this.#pending.length >= WORTH_A_LANE)) {
      if (this.#busy >= LANES) return
      const batch = this.#takeBatch()
      this.#busy++
      this.#underWay += batch.length
      void this.#carry(batch).finally(() => {
        this.#busy--
        this.#underWay -= batch.length
        if (this.#pending.length > 0) this.#plan()
        else if (this.#busy === 0) for (const wake of this.#idle.splice(0)) wake()
      })
    }
  }

  #takeBatch(): Item[] {
    let count = 0
    let bytes = 0
    while (count < this.#pending.length && count < MAX_ITEMS) {
      bytes += (this.#pending[count] as Item).bytes
      if (bytes > MAX_BYTES && count > 0) break
      count++
    }
    return this.#pending.splice(0, count)
  }

  async #carry(items: Item[]): Promise<void> {
    const { connection, send, onGone } = this.#options
    try {
      await connection.repeat((options) => this.#sendWanted(items, send, options), {
        timeoutMs: TIMEOUT_MS,
        signal: this.#ended.signal,
      })
      for (const item of items) onGone(item)
    } catch (error) {
      await this.#refused(items, error)
    }
  }

  /** While the server was away some may have become pointless. */
  async #sendWanted(items: Item[], send: OutboxOptions<Item>['send'], options: CallOptions): Promise<void> {
    const wanted = items.filter((item) => this.#options.isWanted(item))
    if (wanted.length > 0) await send(wanted, options)
  }

  async #refused(items: Item[], error: unknown): Promise<void> {
    const { simplify, onGone, logger } = this.#options
    const isRefused = error instanceof BelfryApiError && !mayPass(error)
    const [first] = items
    if (isRefused && items.length > 1) {
      const half = items.length >> 1
      await this.#carry(items.slice(0, half))
      return this.#carry(items.slice(half))
    }
    const simpler = isRefused && first ? simplify(first, error) : null
    if (simpler) {
      logger.warn('Belfry did not take what a handler answered; it is sent without', { error: wordsOf(error) })
      return this.#carry([simpler])
    }
    if (!this.#ended.signal.aborted) logger.error('the end of an attempt cannot be sent', { error: wordsOf(error) })
    for (const item of items) onGone(item)
  }
}
