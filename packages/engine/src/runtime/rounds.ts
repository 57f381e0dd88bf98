import type { Clock, Instant } from './clock.ts'

/** What to look at next: these shards, each from a position on, and no more of one than so many. */
export interface Piece {
  shards: number[]
  after: string[]
  perShard: number
}

/** Before every job's id. */
const FIRST = '00000000-0000-0000-0000-000000000000'
const ROUND_MS = 1_000
/** It costs no more than a twentieth of the time, however much there is. */
const SHARE = 20
/** A piece that took long because the database was away, or this process stopped, says nothing about what one costs. */
const LONGEST_PAUSE_MS = 10_000

/**
 * Goes through the jobs of the owned shards, a bounded number at a time, round and round: a round a second where there are few.
 * A piece that failed is looked at again, after the pause that its time has cost.
 */
export class Rounds {
  readonly #clock: Clock
  readonly #maxVisited: number
  readonly #first: string
  #owned: readonly number[] = []
  /** Of the shards that this round has not been through: where to go on. */
  #left = new Map<number, string>()
  #begunAt: Instant = Number.NEGATIVE_INFINITY
  #notBefore: Instant = Number.NEGATIVE_INFINITY
  /** The round under way pays nothing. */
  #isHurried = false

  /** `first` is the position before all others, unless positions are jobs. */
  constructor(clock: Clock, { maxVisited, first = FIRST }: { maxVisited: number; first?: string }) {
    this.#clock = clock
    this.#maxVisited = maxVisited
    this.#first = first
  }

  own(shards: readonly number[]): void {
    this.#owned = shards
    this.#left = new Map([...this.#left].filter(([shard]) => shards.includes(shard)))
  }

  /** A new round begins at once, whatever the last one cost. */
  restart(): void {
    this.#left.clear()
    this.#notBefore = Number.NEGATIVE_INFINITY
  }

  /** The same, and this one round makes no pauses. */
  hurry(): void {
    this.restart()
    this.#isHurried = true
  }

  /** Looks at the next piece, unless it is too early; `look` answers where each shard goes on, and leaves out those that are done. */
  async next(look: (piece: Piece) => Promise<ReadonlyMap<number, string>>): Promise<{ waitMs: number }> {
    const begun = this.#clock.now()
    if (begun < this.#notBefore || this.#owned.length === 0) return { waitMs: this.#waitMs(begun) }
    if (this.#left.size === 0) {
      this.#begunAt = begun
      this.#left = new Map(this.#owned.map((shard) => [shard, this.#first]))
    }
    const shards = [...this.#left.keys()].slice(0, this.#maxVisited)
    const after = shards.map((shard) => this.#left.get(shard) ?? this.#first)
    let isFree = false
    try {
      const goOn = await look({ shards, after, perShard: Math.max(1, Math.floor(this.#maxVisited / shards.length)) })
      for (const shard of shards) this.#moveOn(shard, goOn.get(shard))
      isFree = this.#isHurried
      if (this.#left.size === 0) this.#isHurried = false
    } finally {
      const now = this.#clock.now()
      const paidAt = isFree ? now : now + Math.min(SHARE * Math.max(0, now - begun), LONGEST_PAUSE_MS)
      this.#notBefore = this.#left.size === 0 ? Math.max(paidAt, this.#begunAt + ROUND_MS) : paidAt
    }
    return { waitMs: this.#waitMs(this.#clock.now()) }
  }

  #moveOn(shard: number, position: string | undefined): void {
    // A shard that was given away meanwhile is not gone through any more.
    if (position !== undefined && this.#left.has(shard)) this.#left.set(shard, position)
    else this.#left.delete(shard)
  }

  #waitMs(now: Instant): number {
    return this.#owned.length === 0 ? ROUND_MS : Math.min(Math.max(0, this.#notBefore - now), ROUND_MS)
  }
}
