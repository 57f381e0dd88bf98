import { PRIORITIES } from '../job/level.ts'

export const HEAD_START_US = 30_000_000
export const DEFAULT_LEVEL = 5

export interface Served {
  priority: number
  turn: number
}

/** Claims of which something may wait for a slot that are told apart. */
const MAX_CLAIMS = 100

/** What a claim has leased: where it begins and ends in virtual time, and its last turn. */
interface Leased {
  lowest: number
  highest: number
  lastTurn: number
}

/** A claim, as it was told. */
export interface Claim {
  runs: readonly Served[]
  /** All that could be taken was there. */
  mayBeMore: boolean
  /** The first turn of what is leased and waits for a slot; null: all has begun. */
  firstWaiting: number | null
}

/**
 * How far a queue is, in microseconds of virtual time: no run that becomes ready starts before that. It is the highest start
 * of what has begun, less what that had for a head start: what was leased ahead of a slot has not been served yet, and
 * whoever comes now is not behind it. And it is never behind the first run that is ready. Only while nothing is ready the
 * clock counts too: old work must neither be passed for its age, nor keep new work waiting.
 */
export class VirtualTime {
  #reached = 0
  /**
   * Per priority, where its next newcomers start, if that is later. New flows start where the queue is, one as the other: while
   * such are served, time goes on as the clock does, or they would keep for ever from its turn what waits behind them.
   */
  readonly #levels = new Float64Array(PRIORITIES)
  #waits = false
  #waitsElsewhere = false
  #servedAt = 0
  /** Those of which something may still wait for a slot. */
  #claims: Leased[] = []

  get reached(): number {
    return this.#reached
  }

  /** This node knows of runs that are ready. */
  get waits(): boolean {
    return this.#waits
  }

  floor(nowUs: number, priority: number): number {
    const reached = Math.max(this.#reached, this.#levels[priority] as number)
    const waits = this.#waits || this.#waitsElsewhere
    return waits && reached > 0 ? reached : Math.max(nowUs, reached)
  }

  served(nowUs: number, { runs, mayBeMore, firstWaiting }: Claim, intervalUs: number): void {
    const before = this.#reached
    const top = new Array<number>(PRIORITIES).fill(0)
    const claim = { lowest: Number.POSITIVE_INFINITY, highest: 0, lastTurn: 0 }
    for (const { priority, turn } of runs) {
      const start = startOf(priority, turn)
      const time = timeOf(start, turn, nowUs)
      claim.lowest = Math.min(claim.lowest, time)
      claim.highest = Math.max(claim.highest, time)
      claim.lastTurn = Math.max(claim.lastTurn, turn)
      top[priority] = Math.max(start, top[priority] as number)
    }
    this.#keep(claim)
    this.#begin(firstWaiting)
    const tick = this.#tick(nowUs, runs.length * intervalUs)
    if (!mayBeMore) return
    this.#waits = true
    for (let priority = 0; priority < PRIORITIES; priority++) {
      const level = Math.max(before, this.#levels[priority] as number)
      if (before > 0 && (top[priority] as number) >= level) this.#levels[priority] = level + tick
    }
  }

  #keep(claim: Leased): void {
    const last = this.#claims.at(-1)
    if (last === undefined || this.#claims.length < MAX_CLAIMS) this.#claims.push(claim)
    else {
      // Too many to tell apart: these have begun when both have.
      last.lowest = Math.min(last.lowest, claim.lowest)
      last.highest = Math.max(last.highest, claim.highest)
      last.lastTurn = Math.max(last.lastTurn, claim.lastTurn)
    }
  }

  /** What was leased before this turn has begun, in whatever order it was leased. */
  #begin(firstWaiting: number | null): void {
    this.#claims = this.#claims.filter(({ highest, lastTurn }) => {
      if (firstWaiting !== null && firstWaiting <= lastTurn) return true
      this.reach(highest)
      return false
    })
  }

  /** A run counts for no more time than the queue takes for one of each flow: while it stood still it served nobody. */
  #tick(nowUs: number, atMost: number): number {
    const since = this.#servedAt === 0 ? 0 : Math.max(0, nowUs - this.#servedAt)
    this.#servedAt = nowUs
    return Math.min(atMost, since)
  }

  /** The lowest turn of each level that waits; there is one at least. */
  saw(nowUs: number, heads: readonly (number | null)[]): void {
    // What is leased and has not begun goes before them.
    let lowest = Math.min(...this.#claims.map((claim) => claim.lowest))
    heads.forEach((turn, level) => {
      if (turn !== null) lowest = Math.min(lowest, timeOf(startOf(level % PRIORITIES, turn), turn, nowUs))
    })
    this.reach(lowest)
    this.#waits = true
  }

  reach(reached: number): void {
    this.#reached = Math.max(this.#reached, reached)
  }

  /** Other nodes know of runs that are ready, or none does. */
  hear(waits: boolean): void {
    this.#waitsElsewhere = waits
  }

  /** Nothing waits. */
  drained(): void {
    this.#waits = false
  }
}

/**
 * How far a queue is whose next run is this one: between its start and its turn, since nobody knows how much of its head start it
 * has used up; not behind the clock, if that is between them.
 */
const timeOf = (start: number, turn: number, nowUs: number): number =>
  turn >= start ? start : Math.max(turn, Math.min(start, nowUs))

const startOf = (priority: number, turn: number): number => turn + (priority - DEFAULT_LEVEL) * HEAD_START_US
