/** None of those inside moved for so long: they wait for something that is not ours to end. */
const STANDS_STILL_MS = 200
/** However fast a line moves, no call stands in it for longer. */
const PATIENCE_MS = 1_000

interface Gate {
  inside: Set<Visit>
  line: Set<() => void>
}

/** One that is inside. */
export interface Visit {
  /** It got on with what it does. */
  moved(): void
  leave(): void
}

/**
 * Lets only a few through to the same thing at a time. Those behind them stand in a line, which costs nothing, while those inside get
 * on. Where they stand still the others are turned away at once.
 */
export class Turnstile {
  readonly #most: number
  readonly #gates = new Map<string, Gate>()
  readonly #movedAt = new WeakMap<Visit, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Goes in by all of these names. Null: turned away. */
  async enter(names: readonly string[]): Promise<Visit | null> {
    const cameAt = performance.now()
    for (let gate = this.#fullOf(names); gate !== undefined; gate = this.#fullOf(names)) {
      const patience = Math.min(this.#movedLast(gate) + STANDS_STILL_MS, cameAt + PATIENCE_MS) - performance.now()
      if (patience <= 0) return null
      await someoneLeaves(gate, patience)
    }
    return this.#visit(new Set(names))
  }

  #fullOf(names: readonly string[]): Gate | undefined {
    for (const name of names) {
      const gate = this.#gates.get(name)
      if (gate !== undefined && gate.inside.size >= this.#most) return gate
    }
    return undefined
  }

  #movedLast({ inside }: Gate): number {
    return Math.max(...Array.from(inside, (visit) => this.#movedAt.get(visit) ?? 0))
  }

  #visit(names: ReadonlySet<string>): Visit {
    const visit = {
      moved: () => void this.#movedAt.set(visit, performance.now()),
      leave: () => {
        for (const name of names) this.#leave(name, visit)
      },
    }
    visit.moved()
    for (const name of names) {
      const gate = this.#gates.get(name)
      if (gate) gate.inside.add(visit)
      else this.#gates.set(name, { inside: new Set([visit]), line: new Set() })
    }
    return visit
  }

  /** All in the line look again, in their order: one may stand in several lines, so the first is not always the one that can go. */
  #leave(name: string, visit: Visit): void {
    const gate = this.#gates.get(name) as Gate
    gate.inside.delete(visit)
    if (gate.inside.size === 0) this.#gates.delete(name)
    for (const look of gate.line) look()
  }
}

/** Ends when a visit is over, or the time is. */
const someoneLeaves = (gate: Gate, ms: number): Promise<void> =>
  new Promise((resolve) => {
    const look = () => {
      clearTimeout(timer)
      gate.line.delete(look)
      resolve()
    }
    const timer = setTimeout(look, ms)
    gate.line.add(look)
  })
