import { admit, type HeldKey } from '../concurrency/admission.ts'
import { isOnce } from '../job/states.ts'
import { type Claimed, claimedOf } from '../leases/lease-picked.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Transaction } from '../store/database.ts'
import type { Level } from './claim.sql.ts'
import {
  type Asked,
  askOldest,
  type CountedKey,
  chargeKeys,
  countKeys,
  type KeyedRow,
  type LockedKey,
  leaseKeyed,
  type PickedRun,
  pickKeyed,
  readCosts,
  skipKeyed,
} from './claim-keyed.sql.ts'
import { holdKeys } from './hold-keys.ts'

export interface KeyedClaim {
  queueId: number
  now: Instant
  levels: readonly Level[]
  /** As many as are wanted at most, in the order in which they are to be filled. */
  places: readonly { holder: string; leaseUntil: Instant }[]
}

interface KeyedTerms {
  /** What a run gets that is asked to stop for another. */
  cancelGraceMs: number
  /** The transaction holds the limit of the queue; if it does not, nothing is taken from a queue that has one. */
  isQueueHeld: boolean
  /** Keys of which nothing is looked at. */
  passedOver: readonly string[]
  /** How often it looks further. */
  maxRounds: number
  /** Gets the keys that were looked at: one of them it is if the claim fails. */
  looked: Set<string>
}

/** What a claim did besides leasing: to be told after its commit. */
export interface KeyedEffects extends KeyedTerms {
  /** By priority, the turn that the claim came to: nothing before it is ready any more, as far as it saw. */
  reached: Map<number, number>
  /** Keys that somebody else held: their runs stay ready. */
  heldElsewhere: Set<string>
  /** There may be more behind what was looked at. */
  mayBeMore: boolean
  /** Keys that have room which older runs are to get, or may have got some: they are to be looked at. */
  toWake: { shard: number; key: string }[]
  /** Runs that were asked to stop. */
  asked: Asked[]
  /** Jobs of which a run is gone. */
  gone: string[]
}

export const newEffects = (terms: KeyedTerms): KeyedEffects => ({
  ...terms,
  ...{ reached: new Map(), heldElsewhere: new Set(), mayBeMore: false, toWake: [], asked: [], gone: [] },
})

/** What is looked at beyond the first few, where many of those find no slot: so many rows of one key delay nobody for long. */
const WIDER = 1_000
export const MAX_ROUNDS = 3
/** So exactly is known when a key was last used. */
const USED_STEP_MS = 3_600_000

/**
 * Leases ready runs that have a key: the only place where limits of keys are kept. In one transaction, the caller's: takes
 * ready rows, then the rows of their keys, passing over what others hold; then, in a statement that sees what the last holder of
 * each key committed, counts the leases, and leases as many as are free. Until the commit nobody else can lease runs of these
 * keys, only end them. Runs that find no slot are moved aside, and more are looked at in their place.
 */
export async function claimKeyed(tx: Transaction, claim: KeyedClaim, effects: KeyedEffects): Promise<Claimed[]> {
  const { queueId, now, places } = claim
  const claimed: Claimed[] = []
  const leaseUntils = new Map(places.map(({ holder, leaseUntil }) => [holder, leaseUntil]))
  let levels = claim.levels
  let lowestLeft = new Map<number, number>()
  for (let round = 0; round < effects.maxRounds && claimed.length < places.length; round++) {
    const limit = places.length - claimed.length + (round === 0 ? 0 : WIDER)
    const { isQueueHeld, heldElsewhere, passedOver, looked } = effects
    const exceptKeys = [...heldElsewhere, ...passedOver]
    const picked = await pickKeyed(tx, { queueId, levels, limit, isQueueHeld, exceptKeys })
    for (const { key } of picked) looked.add(key)
    const done = await decideAll(tx, picked, { now, workers: places.length - claimed.length }, effects)
    const rows = await leaseKeyed(tx, done.lease, places.slice(claimed.length), done.limit, now)
    claimed.push(...rows.map((row) => claimedRowOf(row, { queueId, now, leaseUntils })))
    for (const run of picked) raise(effects.reached, run)
    lowestLeft = merged(lowestLeft, done.stay)
    effects.mayBeMore = picked.length === limit || lowestLeft.size > 0
    if (picked.length < limit) break
    levels = levels.map(({ priority, watermark }) => ({
      priority,
      watermark: Math.max(watermark, effects.reached.get(priority) ?? watermark),
    }))
  }
  for (const [priority, turn] of lowestLeft) effects.reached.set(priority, turn)
  return claimed
}

interface Decided {
  lease: PickedRun[]
  limit: PickedRun[]
  stay: PickedRun[]
}

/** What becomes of rows that this transaction holds; all that is written besides leases and waiting is written here. */
async function decideAll(
  tx: Transaction,
  picked: readonly PickedRun[],
  at: { now: Instant; workers: number },
  effects: KeyedEffects,
): Promise<Decided> {
  const decided: Decided = { lease: [], limit: [], stay: [] }
  if (picked.length === 0) return decided
  const byName = groupByKey(picked)
  const held = await holdKeys(tx, byName, at.now)
  for (const [key, runs] of byName) {
    if (held.has(key)) continue
    effects.heldElsewhere.add(key)
    decided.stay.push(...runs)
  }
  if (held.size === 0) return decided
  const keys = [...held.values()]
  const counted = await countKeys(tx, keys)
  const rated = keys.filter(({ rate }) => rate !== null).flatMap(({ key }) => byName.get(key) ?? [])
  const costs = rated.length === 0 ? new Map<string, number>() : await readCosts(tx, rated)
  const skip: PickedRun[] = []
  const ask: { shard: number; key: string; count: number }[] = []
  const charge: { shard: number; key: string; rateAt: number }[] = []
  let workers = at.workers
  const places = new Map(keys.map(({ key }, place) => [key, place]))
  // In order of their first turn: who waits longest gets the workers that there are.
  for (const [name, picks] of byName) {
    const key = held.get(name)
    const count = counted[places.get(name) ?? -1]
    if (key === undefined || count === undefined) continue
    const { shard } = key
    const admission = admit(heldKeyOf(key, count), candidatesOf(picks, key, costs), { now: at.now, workers })
    workers -= admission.lease.length
    decided.lease.push(...admission.lease)
    decided.limit.push(...admission.limit)
    decided.stay.push(...admission.stay)
    skip.push(...admission.skip)
    // Whoever ended a run of the key since it was counted found nobody to wake: what is moved aside is not there yet.
    const mayHaveMissed = admission.limit.length > 0 && !key.isPaused
    if (admission.leavesRoom || mayHaveMissed) effects.toWake.push({ shard, key: name })
    if (admission.ask > 0) ask.push({ shard, key: name, count: admission.ask })
    if (admission.rateAt !== key.rateAt || key.usedAt < at.now - USED_STEP_MS)
      charge.push({ shard, key: name, rateAt: admission.rateAt })
  }
  if (charge.length > 0) await chargeKeys(tx, charge, at.now)
  if (skip.length > 0) effects.gone.push(...(await skipKeyed(tx, skip, at.now)))
  if (ask.length > 0) {
    const asked = await askOldest(tx, ask, at.now + effects.cancelGraceMs)
    effects.asked.push(...asked)
    leaveUnasked(decided, ask, asked, effects)
  }
  return decided
}

/** Where somebody held those who are to stop, whoever comes for them stays ready, so that the next claim asks again. */
function leaveUnasked(
  decided: Decided,
  ask: readonly { key: string; count: number }[],
  asked: readonly Asked[],
  { heldElsewhere }: KeyedEffects,
): void {
  const counts = new Map<string, number>()
  for (const { key } of asked) counts.set(key, (counts.get(key) ?? 0) + 1)
  const unasked = new Set(ask.filter(({ key, count }) => (counts.get(key) ?? 0) < count).map(({ key }) => key))
  if (unasked.size === 0) return
  for (const key of unasked) heldElsewhere.add(key)
  decided.stay.push(...decided.limit.filter(({ key }) => unasked.has(key)))
  decided.limit = decided.limit.filter(({ key }) => !unasked.has(key))
}

/** Written out: there is one for each run in a claim where no two have the same key. */
const heldKeyOf = (
  { maxRunning, rate, rateAt, onLimit, isPaused }: LockedKey,
  { leased, asked, oldestLimited, oldest }: CountedKey,
): HeldKey => ({ maxRunning, rate, rateAt, onLimit, isPaused, leased, asked, oldestLimited, oldest })

/** In order of nominal time. What costs more than may ever go at once goes when nothing else has for long enough. */
function candidatesOf(
  runs: readonly PickedRun[],
  { rate }: LockedKey,
  costs: ReadonlyMap<string, number>,
): readonly PickedRun[] {
  const priced =
    rate === null ? runs : runs.map((run) => ({ ...run, cost: Math.min(costs.get(run.jobId) ?? 1, rate.burst) }))
  return priced.length === 1 ? priced : priced.toSorted((a, b) => a.nominalAt - b.nominalAt || a.turn - b.turn)
}

function groupByKey(runs: readonly PickedRun[]): Map<string, PickedRun[]> {
  const groups = new Map<string, PickedRun[]>()
  for (const run of runs) {
    const group = groups.get(run.key)
    if (group) group.push(run)
    else groups.set(run.key, [run])
  }
  return groups
}

function claimedRowOf(
  row: KeyedRow,
  { queueId, now, leaseUntils }: { queueId: number; now: Instant; leaseUntils: ReadonlyMap<string, Instant> },
): Claimed {
  const [limitKey, delivery, holder] = [row[13], row[14], row[15]]
  const leaseUntil = leaseUntils.get(holder) ?? now
  const claimed = claimedOf(row, { queueId, holder, now, leaseUntil, atMostOnce: isOnce(delivery) })
  claimed.lease.limitKey = limitKey
  return claimed
}

function raise(reached: Map<number, number>, { priority, turn }: PickedRun): void {
  reached.set(priority, Math.max(turn, reached.get(priority) ?? turn))
}

function merged(lowest: ReadonlyMap<number, number>, left: readonly PickedRun[]): Map<number, number> {
  const all = new Map(lowest)
  for (const { priority, turn } of left) all.set(priority, Math.min(turn, all.get(priority) ?? turn))
  return all
}
