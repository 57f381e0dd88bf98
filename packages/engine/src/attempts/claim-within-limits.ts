import { isOnce } from '../job/states.ts'
import type { Claimed, Place } from '../leases/take-lease.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Transaction, Vital } from '../store/database.ts'
import { admitKeyed, type Decided, type KeyEffects, type KeyedRun, noEffects } from './admit-keyed.ts'
import { type FaultyClaims, isFault } from './faulty-claims.ts'
import { type HoldQueueDeps, holdQueue, queueFound } from './hold-queue.ts'
import { leasePicked, type PickedRun, pick } from './limited-picks.sql.ts'
import { NOT_KNOWN, type Taken, type Wanted } from './taken.ts'

export interface LimitsDeps extends HoldQueueDeps {
  db: Vital
  cancelGraceMs: number
  faulty: FaultyClaims
  wakeups: Wakeups
}

/** How far a claim goes, and the keys that it looked at: one of them is at fault if the claim fails. */
interface Reach {
  maxRounds: number
  looked: Set<string>
}

/** What is looked at beyond the first few, where many of those find no slot: so many rows of one key delay the others not for long. */
const WIDER = 1_000
const MAX_ROUNDS = 3

/**
 * Claims runs that have a key, or of a queue that has a limit, in one transaction: the queue's limit first, then a count, a pick of no
 * more than is free, the limits of the keys, their count, and the leases. One key that cannot be claimed by stops no other: of what
 * fails the first half is claimed, and so on, until one key is left, which is passed over for a while.
 */
export async function claimWithinLimits(deps: LimitsDeps, wanted: Wanted): Promise<Taken> {
  const { faulty } = deps
  const looked = new Set<string>()
  for (let limit = wanted.limit, maxRounds = MAX_ROUNDS; ; limit = Math.max(1, limit >> 1), maxRounds = 1) {
    looked.clear()
    try {
      const taken = await claimOnce(deps, { ...wanted, limit }, { maxRounds, looked })
      return limit === wanted.limit ? taken : { ...taken, mayBeMore: true }
    } catch (error) {
      if (!isFault(error) || looked.size === 0) throw error
      if (looked.size > 1 && limit > 1) continue
      for (const key of looked) faulty.addKey(key, wanted.queueId, error)
      return NOT_KNOWN
    }
  }
}

async function claimOnce(deps: LimitsDeps, wanted: Wanted, reach: Reach): Promise<Taken> {
  const { db, limited, wakeups } = deps
  const { queueId, kind } = wanted
  const isLimited = limited.has(queueId)
  let claim = new LimitedClaim(deps, wanted, reach)
  const found = await db.transaction(async (tx) => {
    // It may have to be done twice.
    claim = new LimitedClaim(deps, wanted, reach)
    const queue = isLimited ? await holdQueue(tx, deps, queueId, wanted.limit) : null
    if (typeof queue === 'string') return queue
    await claim.perform(tx, queue?.allowed ?? wanted.limit, queue !== null)
    await queue?.charge(claim.claimed.length)
    return queue && { queue, leased: claim.claimed.length }
  })
  const mayBeMore = found !== null && queueFound(deps, queueId, found)
  if (kind === 'keyed') tell(wakeups, claim.effects)
  return claim.taken(mayBeMore)
}

/** A claim of runs that have a key is committed. */
function tell(wakeups: Wakeups, { toWake, asked, gone }: KeyEffects): void {
  for (const { shard, key } of toWake) wakeups.keyChanged(shard, key)
  for (const { jobId, nominalAt } of asked) wakeups.cancel(jobId, nominalAt)
  for (const jobId of gone) wakeups.gone(jobId)
}

/** What a run gets that is asked to stop for another, and the keys that are passed over. */
type ClaimTerms = Pick<LimitsDeps, 'cancelGraceMs'> & { faulty: Pick<FaultyClaims, 'keys'> }

/** The part of the transaction that picks and leases, and what came of it. */
export class LimitedClaim {
  readonly effects: KeyEffects = noEffects()
  readonly claimed: Claimed[] = []
  readonly #deps: ClaimTerms
  readonly #wanted: Wanted
  readonly #reach: Reach
  readonly #reached = new Map<number, number>()
  readonly #lowestLeft = new Map<number, number>()
  #isWhole = true
  #onceWaits = false

  constructor(deps: ClaimTerms, wanted: Wanted, reach: Reach) {
    this.#deps = deps
    this.#wanted = wanted
    this.#reach = reach
  }

  /** Runs that find no slot are moved aside, and more are looked at in their place. */
  async perform(tx: Transaction, allowed: number, isQueueHeld: boolean): Promise<void> {
    const { queueId, kind, now } = this.#wanted
    const { faulty } = this.#deps
    const places = placesFor(this.#wanted, allowed)
    let levels = this.#wanted.levels
    for (let round = 0; round < this.#reach.maxRounds && this.claimed.length < allowed; round++) {
      const limit = allowed - this.claimed.length + (round === 0 ? 0 : WIDER)
      const exceptKeys = kind === 'keyed' ? [...this.effects.heldElsewhere, ...faulty.keys] : []
      const picked = await pick(tx, kind, { queueId, levels, limit, isQueueHeld, exceptKeys })
      for (const { key } of picked) if (key !== null) this.#reach.looked.add(key)
      const done = await this.#decide(tx, picked, allowed - this.claimed.length)
      const to = { queueId, now, places: places.slice(this.claimed.length), isQueueHeld }
      this.claimed.push(...(await leasePicked(tx, done, to)))
      for (const { priority, turn } of picked) raise(this.#reached, priority, turn)
      for (const { priority, turn } of done.stay) lower(this.#lowestLeft, priority, turn)
      this.#isWhole = picked.length < limit
      if (this.#isWhole || kind === 'plain') break
      levels = levels.map(({ priority, watermark }) => ({
        priority,
        watermark: Math.max(watermark, this.#reached.get(priority) ?? watermark),
      }))
    }
  }

  async #decide(tx: Transaction, picked: readonly PickedRun[], workers: number): Promise<Decided> {
    const { kind, now, freePlaces } = this.#wanted
    const { cancelGraceMs } = this.#deps
    if (kind === 'keyed')
      return admitKeyed(tx, picked as readonly KeyedRun[], { now, workers, cancelGraceMs }, this.effects)
    // A run that may be performed at most once is never leased ahead of a free slot.
    const decided: Decided = { lease: [], limit: [], stay: [] }
    for (const [nth, run] of picked.entries())
      (isOnce(run.delivery) && nth >= freePlaces ? decided.stay : decided.lease).push(run)
    this.#onceWaits = decided.stay.length > 0
    return decided
  }

  taken(queueMayHaveMore: boolean): Taken {
    for (const [priority, turn] of this.#lowestLeft) this.#reached.set(priority, turn)
    const { claimed } = this
    const mayBeMore = queueMayHaveMore || !this.#isWhole || this.#lowestLeft.size > 0
    return {
      claimed,
      reached: this.#reached,
      mayBeMore: mayBeMore || claimed.length === this.#wanted.limit,
      onceWaits: this.#onceWaits,
      isHeld: claimed.length === 0 && this.effects.heldElsewhere.size > 0,
    }
  }
}

/** One for each run: the last of the places takes all further runs. */
function placesFor({ places }: Wanted, count: number): Place[] {
  const last = places.at(-1) as Place
  return Array.from({ length: count }, (_, nth) => places[nth] ?? last)
}

function raise(turns: Map<number, number>, priority: number, turn: number): void {
  turns.set(priority, Math.max(turn, turns.get(priority) ?? turn))
}

function lower(turns: Map<number, number>, priority: number, turn: number): void {
  turns.set(priority, Math.min(turn, turns.get(priority) ?? turn))
}
