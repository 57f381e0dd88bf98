import { hasKey, PRIORITIES } from '../job/level.ts'
import type { Turns } from '../ready/turn.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import { isOutage } from '../store/database-errors.ts'
import type { Kind, Level } from './pick.ts'
import type { Taken } from './taken.ts'

/** So many runs of these levels, for whoever the taker leases for. */
export interface Room {
  kind: Kind
  /** Slots that are free now, and that no other claim counts on: a run that may be performed at most once gets one of them. */
  freeSlots: number
  levels: readonly Level[]
  limit: number
}

/** Where claimed runs go: it says how many it can take, leases them and keeps them. */
export interface Taker {
  readonly queueId: number
  /** While runs that may be performed at most once wait, nothing should be leased ahead of a slot: they would never get one. */
  credit(onceWaits: boolean): number
  freeSlots(): number
  wantsMore(): boolean
  lease(room: Room): Promise<Taken>
  /** The first turn of what is leased and waits for a slot; null: nothing does. */
  firstWaiting(): number | null
}

const MAX_CLAIM = 2_000
/** The node's clock is not trusted: until it is, nothing is leased. */
const DOUBT_MS = 50
/** Each key costs as much as a run does: the more runs share it the better. */
const MAX_KEYED_CLAIM = 4_000
/** For what stands before all that was leased; behind it, further ones are better leased many at a time. */
const SMALL_CLAIM = 16
const LONGEST_WAIT_MS = 1_000
/** Whoever holds a key commits within a few milliseconds, and a pool that is full is so only for as long. */
const SHORT_PAUSE_MS = 5
/** A pool that has no room for longer says when it has. */
const MAX_SHORT_PAUSES = 10
const FIRST_LEVEL: Record<Kind, number> = { plain: 0, keyed: PRIORITIES }
/** Of two whose turn it is at once the first goes first. */
const KINDS: readonly Kind[] = ['keyed', 'plain']
const kindOf = (level: number): Kind => (hasKey(level) ? 'keyed' : 'plain')
const LOWEST_TURN = Number.MIN_SAFE_INTEGER
const all = (slots: number): number => slots
const half = (slots: number): number => Math.ceil(slots / 2)

/**
 * Claims the ready runs of one queue for all its workers on this node: few claims, big ones. Per priority level it
 * remembers a watermark below which it knows of no ready run, so that dead index entries are not walked again; whoever
 * makes a run ready below it says so, and the sweep finds what nobody said.
 */
export class Claimer implements Step {
  readonly #taker: Taker
  readonly #deps: { clock: Clock; turns: Turns }
  readonly #watermarks = new Map<number, number>()
  /** Levels that may have ready runs. A level leaves before it is claimed from, so that a hint meanwhile is not lost. */
  readonly #hinted = new Set<number>()
  /** The lowest turn that was said of a level while it is claimed from: its watermark is not raised past it. */
  readonly #heard = new Map<number, number>()
  /** Claims under way, each by the turns that it began from: what lies behind those may still be ready. */
  readonly #underWay = new Set<ReadonlyMap<number, number>>()
  /** A claim beside the one that the loop makes. */
  #beside: Promise<void> | null = null
  /** Per level, the last turn that was leased. */
  readonly #leasedUpTo = new Map<number, number>()
  /** So many are said to be ready before what was leased last: they are not left waiting until a large claim is worth its statement. */
  readonly #overtaking: Record<Kind, number> = { plain: 0, keyed: 0 }
  #shortPauses = 0
  /** The last claim left something of which another transaction holds the key. */
  #isHeld = false
  /** The last claim left runs that may be performed at most once: until they have a slot nothing is leased ahead of one. */
  #onceWaits = false

  /** `turns` is told of every claim: by them it knows how far the queue is. */
  constructor(taker: Taker, deps: { clock: Clock; turns: Turns }) {
    this.#taker = taker
    this.#deps = deps
  }

  get queueId(): number {
    return this.#taker.queueId
  }

  /** Ready runs are known to wait: nothing may be leased past them. */
  get backlogged(): boolean {
    return this.#hinted.size > 0 || this.#underWay.size > 0
  }

  /** Runs that may be performed at most once are known to wait. */
  get onceWaits(): boolean {
    return this.#onceWaits
  }

  /** A run of this level became ready. */
  hint(level: number, turn: number): void {
    const known = this.#watermarks.get(level)
    if (known === undefined || turn < known) this.#watermarks.set(level, turn)
    if (turn < (this.#leasedUpTo.get(level) ?? LOWEST_TURN)) {
      this.#overtaking[kindOf(level)]++
      this.#shortPauses = 0
    }
    if (this.#underWay.size > 0) this.#heard.set(level, Math.min(turn, this.#heard.get(level) ?? turn))
    this.#hinted.add(level)
    if (this.#few > 0 && this.#underWay.size > 0) this.#beside ??= this.#claimBeside()
  }

  /** What a sweep found at the head of each level, without looking at watermarks. */
  sweep(heads: readonly (number | null)[]): void {
    heads.forEach((turn, level) => {
      if (turn !== null) this.hint(level, turn)
    })
  }

  async runOnce(): Promise<{ waitMs: number }> {
    if (!this.#deps.clock.isTrusted) return { waitMs: DOUBT_MS }
    try {
      return await this.#claimAll()
    } finally {
      await this.#beside
    }
  }

  async #claimAll(): Promise<{ waitMs: number }> {
    this.#isHeld = false
    const done: Record<Kind, boolean> = { keyed: false, plain: false }
    const kinds = this.#kindsInTurn()
    let failure: { error: unknown } | null = null
    for (const [place, kind] of kinds.entries()) {
      const share = place === kinds.length - 1 ? all : half
      try {
        done[kind] = kind === 'plain' ? await this.#claimPlain(share) : await this.#claimKeyed(share)
      } catch (error) {
        // One kind that cannot be claimed stops no other.
        if (isOutage(error)) throw error
        failure ??= { error }
      }
    }
    if (failure !== null) throw failure.error
    const { keyed, plain } = done
    if (plain || (keyed && !this.#isHeld)) return { waitMs: 0 }
    return { waitMs: keyed || this.#asksAgain() ? SHORT_PAUSE_MS : LONGEST_WAIT_MS }
  }

  /**
   * The kinds that wait, whose first run is the first in turn before the others: where there is room for a few only, each gets what is
   * its turn, and none can keep the others from it.
   */
  #kindsInTurn(): Kind[] {
    const heads = new Map<Kind, number>()
    for (const level of this.#hinted) {
      const kind = kindOf(level)
      const turn = this.#watermarks.get(level) ?? LOWEST_TURN
      heads.set(kind, Math.min(turn, heads.get(kind) ?? turn))
    }
    return KINDS.filter((kind) => heads.has(kind)).sort((a, b) => (heads.get(a) ?? 0) - (heads.get(b) ?? 0))
  }

  async #claimPlain(share: (slots: number) => number): Promise<boolean> {
    const levels = this.#levelsOf('plain')
    const isLarge = !this.#isForFew && this.#taker.wantsMore()
    if (levels.length === 0 || (!isLarge && this.#few === 0)) return false
    const credit = share(this.#taker.credit(this.#onceWaits || levels.length < this.#hinted.size))
    const limit = isLarge ? Math.min(MAX_CLAIM, credit - this.#roomForFew(credit)) : Math.min(this.#few, credit)
    return limit > 0 && this.#claim(levels, limit, 'plain')
  }

  /** Of what may be leased ahead of a slot a little is left to those who overtake. */
  #roomForFew(credit: number): number {
    return Math.max(0, Math.min(SMALL_CLAIM, Math.floor((credit - this.#taker.freeSlots()) / 4)))
  }

  /** Work waits for slots, and a few stand before it: they are leased first, without the many behind them. */
  get #isForFew(): boolean {
    return this.#few > 0 && this.#few < SMALL_CLAIM && this.#taker.firstWaiting() !== null
  }

  /** Those of the usual kind that stand before what was leased, and one more, which tells that there are no more such. */
  get #few(): number {
    const { plain: overtaking } = this.#overtaking
    return overtaking === 0 ? 0 : Math.min(SMALL_CLAIM, overtaking + 1)
  }

  /** Whoever overtakes does not wait for a claim of those that it overtakes. The loop waits for it, and tries again what fails. */
  async #claimBeside(): Promise<void> {
    try {
      // What is said in the same breath goes along.
      await null
      if (this.#isForFew && this.#underWay.size > 0) await this.#claimPlain(all)
    } catch {
    } finally {
      this.#beside = null
    }
  }

  #levelsOf(kind: Kind): number[] {
    return [...this.#hinted].filter((level) => kindOf(level) === kind)
  }

  /** Runs that have a key are leased into free slots only: ahead of one they would hold a slot of their key without working. */
  async #claimKeyed(share: (slots: number) => number): Promise<boolean> {
    // Runs that take no time, of the claim before, end in this turn of the event loop: then there is room for a large claim.
    if (this.#taker.freeSlots() < MAX_KEYED_CLAIM) await new Promise((resolve) => setImmediate(resolve))
    const levels = this.#levelsOf('keyed')
    const slots = share(this.#taker.freeSlots())
    if (levels.length === 0 || slots === 0) return false
    return this.#claim(levels, Math.min(MAX_KEYED_CLAIM, slots), 'keyed')
  }

  /** Answers whether it got on: false, if all that is left waits for a slot. */
  async #claim(levels: number[], limit: number, kind: Kind): Promise<boolean> {
    const overtaking = this.#overtaking[kind]
    this.#overtaking[kind] = 0
    for (const level of levels) this.#hinted.delete(level)
    // What this one was told of and does not get is not to be passed by another under way either.
    if (this.#underWay.size === 0) for (const level of levels) this.#heard.delete(level)
    try {
      const { claimed, mayBeMore } = await this.#leaseUpTo(levels, limit, kind)
      if (mayBeMore) for (const level of levels) this.#hinted.add(level)
      return claimed.length > 0 || kind === 'keyed' || !this.#onceWaits
    } catch (error) {
      for (const level of levels) this.#hinted.add(level)
      this.#overtaking[kind] += overtaking
      throw error
    }
  }

  async #leaseUpTo(levels: number[], limit: number, kind: Kind): Promise<Taken> {
    const from = new Map(levels.map((level) => [level, this.#watermarks.get(level) ?? LOWEST_TURN]))
    const asked = [...from].map(([level, watermark]) => ({ priority: level % PRIORITIES, watermark }))
    const freeSlots = this.#underWay.size === 0 ? this.#taker.freeSlots() : 0
    this.#underWay.add(from)
    const taken = await this.#taker
      .lease({ kind, freeSlots, levels: asked, limit })
      .finally(() => this.#underWay.delete(from))
    const { claimed, mayBeMore, reached, isHeld, onceWaits } = taken
    const firstWaiting = this.#taker.firstWaiting()
    const isAlone = this.#underWay.size === 0
    this.#deps.turns.claimed(this.#deps.clock.now(), this.queueId, {
      runs: claimed,
      mayBeMore: mayBeMore || !isAlone,
      firstWaiting,
    })
    if (isHeld) this.#isHeld = true
    if (kind === 'plain') this.#onceWaits = onceWaits
    const last = lastTurns(claimed)
    let goesOn = false
    for (const [priority, turn] of last) if (this.#goesOn(FIRST_LEVEL[kind] + priority, turn)) goesOn = true
    // All of these went before what had been leased: there may be more such.
    if (mayBeMore && claimed.length > 0 && !goesOn) this.#overtaking[kind] += SMALL_CLAIM
    for (const [priority, turn] of reached) this.#raise(FIRST_LEVEL[kind] + priority, turn)
    return taken
  }

  #raise(level: number, turn: number): void {
    let until = Math.min(turn, this.#heard.get(level) ?? turn)
    for (const from of this.#underWay) until = Math.min(until, from.get(level) ?? until)
    if (until > (this.#watermarks.get(level) ?? LOWEST_TURN)) this.#watermarks.set(level, until)
  }

  /** There was no room for what stands before all that was leased. */
  #asksAgain(): boolean {
    return KINDS.some((kind) => this.#overtaking[kind] > 0) && this.#shortPauses++ < MAX_SHORT_PAUSES
  }

  /** False: it was ready before what has been leased last. */
  #goesOn(level: number, turn: number): boolean {
    if (turn < (this.#leasedUpTo.get(level) ?? LOWEST_TURN)) return false
    this.#leasedUpTo.set(level, turn)
    return true
  }
}

/** By priority; a claim of thousands has few. */
function lastTurns(claimed: Taken['claimed']): Map<number, number> {
  const last = new Map<number, number>()
  for (const { priority, turn } of claimed) if (turn > (last.get(priority) ?? LOWEST_TURN)) last.set(priority, turn)
  return last
}
