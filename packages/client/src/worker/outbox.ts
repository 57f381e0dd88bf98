import { type Connection, isStumble, mayPass, wordsOf } from './connection.ts'
import type { CallOptions } from './lease-calls.ts'
import type { Logger } from './logger.ts'

export interface OutboxItem {
  bytes: number
}

interface OutboxOptions<Item> {
  /** One call; throws as the client does. */
  send(items: Item[], options: CallOptions): Promise<void>
  /** The server will not take this one: another form of it, or null if there is none. */
  simplify(item: Item): Item | null
  /** Those that are still worth sending. */
  areWanted(items: Item[]): Item[]
  /** Sent, or given up. */
  onGone(item: Item): void
  connection: Connection
  logger: Logger
}

const MAX_ITEMS = 1_000
const MAX_BYTES = 4_194_304
const TIMEOUT_MS = 30_000
const LANES = 2
/** So often the server may stumble over a batch before it is taken apart. */
const STUMBLES = 3
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
  #busy = 0
  #planned = false

  constructor(options: OutboxOptions<Item>) {
    this.#options = options
  }

  push(item: Item): void {
    this.#pending.push(item)
    this.#plan()
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
      void this.#carry(batch).finally(() => {
        this.#busy--
        if (this.#pending.length > 0) this.#plan()
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
    const { connection, onGone } = this.#options
    try {
      await connection.repeat((options) => this.#sendWanted(items, options), {
        timeoutMs: TIMEOUT_MS,
        signal: this.#ended.signal,
        retries: (error, tries) => mayPass(error) && !(isStumble(error) && tries >= STUMBLES),
      })
      for (const item of items) onGone(item)
    } catch (error) {
      await this.#refused(items, error)
    }
  }

  /** While the server was away some may have become pointless. */
  async #sendWanted(items: Item[], options: CallOptions): Promise<void> {
    const { areWanted, send } = this.#options
    const wanted = areWanted(items)
    if (wanted.length > 0) await send(wanted, options)
  }

  async #refused(items: Item[], error: unknown): Promise<void> {
    const { simplify, onGone, logger } = this.#options
    const [first] = items
    if (this.#ended.signal.aborted || !first) {
      for (const item of items) onGone(item)
    } else if (items.length > 1) {
      const half = items.length >> 1
      await this.#carry(items.slice(0, half))
      await this.#carry(items.slice(half))
    } else {
      const simpler = simplify(first)
      logger.warn(
        simpler ? 'the end of an attempt is sent in a plainer form' : 'the end of an attempt cannot be sent',
        {
          error: wordsOf(error),
        },
      )
      if (simpler) await this.#carry([simpler])
      else onGone(first)
    }
  }
}
