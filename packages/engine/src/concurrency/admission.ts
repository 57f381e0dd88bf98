import type { Instant } from '../runtime/clock.ts'
import { gcra, type Rate } from './gcra.ts'

/** What happens to a run that finds no free slot of its key. */
export const ON_LIMIT = { wait: 0, skip: 1, cancel_oldest: 2 } as const

/** A key whose row is held, and what was counted after it was held: until the commit others can only free slots of it. */
export interface HeldKey {
  maxRunning: number | null
  rate: Rate | null
  rateAt: number
  onLimit: number
  isPaused: boolean
  /** Live leases; counted no further than `maxRunning`. */
  leased: number
  /** Those of them that have been asked to stop. */
  asked: number
  /** The oldest nominal time that waits for a slot; null: none does. */
  oldestLimited: Instant | null
  /** Of a limit of 1: the oldest nominal time that is alive and may come before others. */
  oldest: Instant | null
}

export interface Candidate {
  nominalAt: Instant
  /** Whether it has been leased before. */
  hasBegun: boolean
  /** As how many runs it counts for the rate. */
  cost: number
}

/** What becomes of the candidates of one key, each list in order of nominal time. */
export interface Admission<Run> {
  lease: readonly Run[]
  /** There are slots for these, but no worker here: whoever has one takes them. */
  stay: readonly Run[]
  limit: readonly Run[]
  skip: readonly Run[]
  rateAt: number
  /** How many leased runs shall stop for those that wait now. */
  ask: number
  /** A slot or the rate is left unused because older runs are to have it. */
  leavesRoom: boolean
}

/**
 * Decides which runs of a key start. `candidates` are in order of nominal time; `workers` is how many of them somebody could
 * perform at once. As many are leased as are free and the rate allows, the oldest first, and none before an older one that
 * waits already. The rest waits aside, so that it is in nobody's way.
 */
export function admit<Run extends Candidate>(
  key: HeldKey,
  candidates: readonly Run[],
  at: { now: Instant; workers: number },
): Admission<Run> {
  const first = candidates.filter((run) => mayGo(key, run))
  const slots = key.isPaused ? 0 : freeSlots(key)
  const fitting = withinRate(key, first.slice(0, slots), at.now)
  const lease = fitting.slice(0, at.workers)
  const rateAt =
    key.rate === null || lease.length === 0 ? key.rateAt : gcra(key.rateAt, key.rate, at.now, costOf(lease)).rateAt
  if (lease.length === candidates.length)
    return { lease, rateAt, leavesRoom: false, stay: NONE, limit: NONE, skip: NONE, ask: 0 }
  const leased = new Set(lease)
  const rest = candidates.filter((run) => !leased.has(run))
  const common = {
    lease,
    rateAt,
    leavesRoom: !key.isPaused && fitting.length < slots && candidates.length > fitting.length,
  }
  const isFull = lease.length === fitting.length
  if (!isFull) return { ...common, stay: rest, limit: NONE, skip: NONE, ask: 0 }
  const isCrowded = !key.isPaused && key.maxRunning !== null && key.leased + lease.length >= key.maxRunning
  const skip = isCrowded && key.onLimit === ON_LIMIT.skip ? rest.filter((run) => !run.hasBegun) : []
  const limit = skip.length === 0 ? rest : rest.filter((run) => run.hasBegun)
  const ask =
    isCrowded && key.onLimit === ON_LIMIT.cancel_oldest
      ? Math.max(0, Math.min(limit.length, key.leased) - key.asked)
      : 0
  return { ...common, stay: NONE, limit, skip, ask }
}

const NONE: readonly never[] = []

const freeSlots = ({ maxRunning, leased }: HeldKey): number =>
  maxRunning === null ? Number.MAX_SAFE_INTEGER : Math.max(0, maxRunning - leased)

/** None overtakes an older one that waits; of a limit of 1 none that is alive at all. */
const mayGo = ({ maxRunning, oldest, oldestLimited }: HeldKey, { nominalAt }: Candidate): boolean =>
  (oldestLimited === null || nominalAt <= oldestLimited) && (maxRunning !== 1 || oldest === null || nominalAt <= oldest)

/** The first of them, as many as the rate lets start now. */
function withinRate<Run extends Candidate>(
  { rate, rateAt }: HeldKey,
  runs: readonly Run[],
  now: Instant,
): readonly Run[] {
  if (rate === null) return runs
  const { allowed } = gcra(rateAt, rate, now, costOf(runs))
  let cost = 0
  const end = runs.findIndex((run) => {
    cost += run.cost
    return cost > allowed
  })
  return end === -1 ? runs : runs.slice(0, end)
}

const costOf = (runs: readonly Candidate[]): number => runs.reduce((sum, { cost }) => sum + cost, 0)
