import type { Clock } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import { type Piece, Rounds } from '../runtime/rounds.ts'

const MAX_VISITED = 1_000
const LONGEST_WAIT_MS = 1_000

/** One kind of name that runs wait for. */
export interface Swept {
  /** The position before all names, unless names are jobs. */
  first?: string
  /** Looks at a piece, and tells the waker of names whose runs wait for nothing; answers where each shard goes on. */
  look(piece: Piece): Promise<ReadonlyMap<number, string>>
}

interface Kind {
  readonly rounds: Rounds
  readonly look: Swept['look']
  /** Whether any run waits so, in whatever shard. */
  isWanted: boolean
}

/**
 * Finds jobs and keys whose runs wait for nothing any more, which no waker was told of: the process that was to tell has died, or did
 * not know. While the pulse says that any run waits it goes through those of its shards, round and round.
 */
export class Sweep implements Step {
  readonly name = 'sweep'
  readonly role = 'promoter'
  readonly #blocked: Kind
  readonly #limited: Kind
  #owned: ReadonlySet<number> = new Set()

  constructor({ clock, blocked, limited }: { clock: Clock; blocked: Swept; limited: Swept }) {
    const kindOf = ({ look, ...position }: Swept): Kind => ({
      rounds: new Rounds(clock, { maxVisited: MAX_VISITED, ...position }),
      look,
      isWanted: false,
    })
    this.#blocked = kindOf(blocked)
    this.#limited = kindOf(limited)
  }

  /** Where shards change hands a process has died, or begun: what it knew of is looked for without pauses, once. */
  own(shards: readonly number[]): void {
    const isNews = shards.some((shard) => !this.#owned.has(shard))
    this.#owned = new Set(shards)
    for (const { rounds } of this.#kinds) {
      rounds.own(shards)
      if (isNews) rounds.hurry()
    }
  }

  /** Answers whether to look. */
  saw({ hasBlocked, hasLimited }: { hasBlocked: boolean; hasLimited: boolean }): boolean {
    this.#blocked.isWanted = hasBlocked
    this.#limited.isWanted = hasLimited
    return hasBlocked || hasLimited
  }

  restart(): void {
    for (const { rounds } of this.#kinds) rounds.restart()
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const wanted = this.#kinds.filter(({ isWanted }) => isWanted)
    // A kind that fails keeps the other one from nothing.
    const steps = await Promise.allSettled(wanted.map(({ rounds, look }) => rounds.next(look)))
    for (const step of steps) if (step.status === 'rejected') throw step.reason
    return {
      waitMs: Math.min(LONGEST_WAIT_MS, ...steps.map((step) => (step.status === 'fulfilled' ? step.value.waitMs : 0))),
    }
  }

  get #kinds(): readonly Kind[] {
    return [this.#blocked, this.#limited]
  }
}
