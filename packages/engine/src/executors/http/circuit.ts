import type { Instant } from '../../runtime/clock.ts'
import type { OpenCircuit } from './circuit-store.sql.ts'
import { ReturnLine } from './return-line.ts'
import { SlidingCounts } from './sliding-counts.ts'

export interface CircuitSettings {
  /** It opens when so large a share of so many attempts failed within this time. */
  windowMs: number
  failureShare: number
  minAttempts: number
  /** The first probe comes after this; each one that fails doubles it, up to the longest. */
  openMs: number
  longestOpenMs: number
  /** So long nobody else probes, in case the node that does so dies. */
  probeMs: number
}

export const CIRCUITS: CircuitSettings = {
  windowMs: 30_000,
  failureShare: 0.5,
  minAttempts: 20,
  openMs: 10_000,
  longestOpenMs: 300_000,
  probeMs: 60_000,
}

/** What an attempt says about its target. Null: nothing, for example because nothing was sent. */
export type Health = 'well' | 'ill' | null

const BUCKETS = 10
/** Those who wait come back as fast as calls were made before it opened, at least so many a second. */
export const SLOWEST_RETURNS_PER_SECOND = 10

/** One target of one tenant, as this node sees it. While it is closed only this node's own attempts count. */
export class Circuit {
  readonly tenantId: number
  readonly origin: string
  readonly line = new ReturnLine()
  /** Attempts that went well, and that did not. */
  readonly #attempts: SlidingCounts
  open: OpenCircuit | null = null
  /** Goes up when it opens or closes: what an attempt says that began before is old news. */
  generation = 0
  /** This node opened it, and the table may not know yet. */
  isUnwritten = false
  /** While its opening is being written: an end of it that overtook that would be undone. */
  writing: Promise<void> | null = null
  /** The number of the last change by this node: a read of the table that began before it is old news. */
  lastChange = 0
  usedAt: Instant = 0
  returnsPerSecond = SLOWEST_RETURNS_PER_SECOND
  asking: Promise<boolean> | null = null

  constructor(tenantId: number, origin: string, settings: CircuitSettings) {
    this.tenantId = tenantId
    this.origin = origin
    this.#attempts = new SlidingCounts(settings.windowMs, BUCKETS)
  }

  /** Counts what an attempt says; true if that is too much and the circuit is to open. */
  count(health: Health, now: Instant, settings: CircuitSettings): boolean {
    if (health === 'well') this.#attempts.addFirst(now)
    if (health !== 'ill') return false
    this.#attempts.addSecond(now)
    const { first, second } = this.#attempts
    return first + second >= settings.minAttempts && second >= (first + second) * settings.failureShare
  }

  /** How many of the attempts in the window failed. */
  get failures(): number {
    return this.#attempts.second
  }

  setOpen(open: OpenCircuit, windowMs: number): void {
    if (this.open === null) {
      const { first, second } = this.#attempts
      this.returnsPerSecond = Math.max(SLOWEST_RETURNS_PER_SECOND, ((first + second) * 1_000) / windowMs)
      this.#begin()
    }
    this.open = open
  }

  setClosed(): void {
    if (this.open === null) return
    this.open = null
    this.isUnwritten = false
    this.#begin()
  }

  #begin(): void {
    this.generation++
    this.#attempts.clear()
    this.line.clear()
  }
}
