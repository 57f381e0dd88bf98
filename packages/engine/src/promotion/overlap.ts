import { OVERLAP } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { SkipRange } from './decide.ts'

/** More runs of one job do not wait for each other: what comes then is skipped. */
export const MAX_WAITING = 1_000

/** What a new run of a job meets. */
export interface Alive {
  /** A run in any state: one in backoff counts, and one that waits for another. */
  any: boolean
  /** One that is no part of a backfill. */
  others: boolean
  /** How many wait for another to end and are no part of a backfill. */
  waiting: number
}

export interface Fate {
  ready: Instant[]
  /** They wait until no other run of the job is alive but such that wait. */
  blocked: Instant[]
  skips: SkipRange[]
  /** Those that wait already end without ever having run. */
  supersedes: boolean
  /** The newest of the times replaces what is alive: `blocked` holds it, and it is ready if nothing is left then. */
  cancels: boolean
}

const NOTHING: Fate = { ready: [], blocked: [], skips: [], supersedes: false, cancels: false }

/**
 * What becomes of nominal times that are due together, oldest first, as if each came while all that was made before it is
 * still alive. But under `skip` they are no overlap of each other: the newest of them runs. A backfill alone makes no
 * scheduled time skip: the newest that meets it runs next.
 */
export function fateOf(policy: number, times: readonly Instant[], alive: Alive): Fate {
  const [first] = times
  if (first === undefined) return NOTHING
  if (policy === OVERLAP.allow) return { ...NOTHING, ready: [...times] }
  if (policy === OVERLAP.cancel_running) {
    const fate = newestOf(times)
    if (!alive.any) return { ...fate, ready: fate.blocked, blocked: [] }
    return { ...fate, cancels: alive.others }
  }
  if (policy === OVERLAP.skip) {
    if (alive.others) return { ...NOTHING, skips: rangeOf('overlap', times) }
    const newest = times.slice(-1)
    return { ...NOTHING, [alive.any ? 'blocked' : 'ready']: newest, skips: rangeOf('overlap', times.slice(0, -1)) }
  }
  if (!alive.any) {
    const { blocked, skips } = buffer(policy, times.slice(1), 0)
    return { ...NOTHING, ready: [first], blocked, skips }
  }
  return buffer(policy, times, alive.waiting)
}

/** Those of the times that wait, while so many wait already. */
function buffer(policy: number, times: readonly Instant[], waiting: number): Fate {
  if (policy === OVERLAP.buffer_latest) return { ...newestOf(times), supersedes: waiting > 0 && times.length > 0 }
  const room = (policy === OVERLAP.buffer_all ? MAX_WAITING : 1) - waiting
  const blocked = times.slice(0, Math.max(0, room))
  return { ...NOTHING, blocked, skips: rangeOf('overlap', times.slice(blocked.length)) }
}

/** The last one waits; those before it never become runs. */
function newestOf(times: readonly Instant[]): Fate {
  return { ...NOTHING, blocked: times.slice(-1), skips: rangeOf('superseded', times.slice(0, -1)) }
}

/** Nominal times that follow each other. */
function rangeOf(reason: 'overlap' | 'superseded', times: readonly Instant[]): SkipRange[] {
  const [from] = times
  const last = times.at(-1)
  return from === undefined || last === undefined ? [] : [{ from, to: last + 1, reason, count: times.length }]
}
