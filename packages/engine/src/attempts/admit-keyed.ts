import { admit, type HeldKey } from '../concurrency/admission.ts'
import type { KeyRef } from '../concurrency/key-ref.ts'
import type { Instant } from '../runtime/clock.ts'
import { grouped } from '../runtime/maps.ts'
import type { Transaction } from '../store/database.ts'
import { holdKeys } from './hold-keys.ts'
import {
  type Asked,
  askOldest,
  type CountedKey,
  chargeKeys,
  countKeys,
  type LockedKey,
  readCosts,
  skipKeyed,
} from './key-slots.sql.ts'
import type { PickedRun } from './limited-picks.sql.ts'

/** What a claim did besides leasing: to be told after its commit. */
export interface KeyEffects {
  /** Keys that another transaction held: their runs stay ready. */
  heldElsewhere: Set<string>
  /** Keys that have room which older runs are to get, or may have got some: they are to be looked at. */
  toWake: KeyRef[]
  /** Runs that were asked to stop. */
  asked: Asked[]
  /** Jobs of which a run is gone. */
  gone: string[]
}

export const noEffects = (): KeyEffects => ({ heldElsewhere: new Set(), toWake: [], asked: [], gone: [] })

/** What becomes of runs that were picked. */
export interface Decided {
  lease: PickedRun[]
  /** They wait aside for a slot. */
  limit: PickedRun[]
  /** They stay ready. */
  stay: PickedRun[]
}

export type KeyedRun = PickedRun & { key: string }

/** So exactly is known when a key was last used. */
const USED_STEP_MS = 3_600_000

/**
 * Decides what becomes of picked runs that have a key: the only place where limits of keys are kept. Takes the rows of their keys,
 * passing over what others hold; then, in a statement that sees what the last holder of each key committed, counts the leases, and
 * lets as many go as are free. Until the commit no other transaction can lease runs of these keys, only end them. All that is written
 * besides leases is written here.
 */
export async function admitKeyed(
  tx: Transaction,
  picked: readonly KeyedRun[],
  at: { now: Instant; workers: number; cancelGraceMs: number },
  effects: KeyEffects,
): Promise<Decided> {
  const decided: Decided = { lease: [], limit: [], stay: [] }
  if (picked.length === 0) return decided
  const byName = grouped(picked, (run) => run.key)
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
  const ask: (KeyRef & { count: number })[] = []
  const charge: (KeyRef & { rateAt: number })[] = []
  let workers = at.workers
  const places = new Map(keys.map(({ key }, place) => [key, place]))
  // In order of their first turn: the run that has waited longest gets the workers that there are.
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
    // A run of the key that ended since the count found none to wake: what is moved aside is not there yet.
    const mayHaveMissed = admission.limit.length > 0 && !key.isPaused
    if (admission.leavesRoom || mayHaveMissed) effects.toWake.push({ shard, key: name })
    if (admission.ask > 0) ask.push({ shard, key: name, count: admission.ask })
    if (admission.rateAt !== key.rateAt || key.usedAt < at.now - USED_STEP_MS)
      charge.push({ shard, key: name, rateAt: admission.rateAt })
  }
  if (charge.length > 0) await chargeKeys(tx, charge, at.now)
  if (skip.length > 0) effects.gone.push(...(await skipKeyed(tx, skip, at.now)))
  if (ask.length > 0) {
    const asked = await askOldest(tx, ask, at.cancelGraceMs)
    effects.asked.push(...asked)
    leaveUnasked(decided, ask, asked, effects)
  }
  return decided
}

/** Where another transaction held the runs that are to stop, those that come for them stay ready, so that the next claim asks again. */
function leaveUnasked(
  decided: Decided,
  ask: readonly { key: string; count: number }[],
  asked: readonly Asked[],
  { heldElsewhere }: KeyEffects,
): void {
  const counts = new Map<string, number>()
  for (const { key } of asked) counts.set(key, (counts.get(key) ?? 0) + 1)
  const unasked = new Set<string | null>(
    ask.filter(({ key, count }) => (counts.get(key) ?? 0) < count).map(({ key }) => key),
  )
  if (unasked.size === 0) return
  for (const key of unasked) heldElsewhere.add(key as string)
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
  runs: readonly KeyedRun[],
  { rate }: LockedKey,
  costs: ReadonlyMap<string, number>,
): readonly KeyedRun[] {
  const priced =
    rate === null ? runs : runs.map((run) => ({ ...run, cost: Math.min(costs.get(run.jobId) ?? 1, rate.burst) }))
  return priced.length === 1 ? priced : priced.toSorted((a, b) => a.nominalAt - b.nominalAt || a.turn - b.turn)
}
