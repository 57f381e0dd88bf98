import type { Instant } from '../runtime/clock.ts'

/** A run that is ready again, as claimers are told of it. */
export interface MadeReady {
  queueId: number
  priority: number
  delivery: number
  turn: number
}

/** What became of names that were looked at. */
export interface Woken<Name> {
  ready: readonly MadeReady[]
  /** Runs that wait for a time now. */
  waiting: readonly { shard: number; dueAt: Instant }[]
  /** Names of which more runs wait, and when to look at them again. */
  again: readonly { name: Name; at: Instant }[]
  /** Names that another transaction holds. */
  held: readonly Name[]
}

export const NOTHING: Woken<never> = { ready: [], waiting: [], again: [], held: [] }

/** One kind of thing that runs wait for: each is known by a name, and one statement wakes the runs of many names. */
export interface Wakeable<Name> {
  /** Which runs these are, for the log. */
  readonly name: string
  idOf(name: Name): string
  /** What a name says that is told a second time before it was looked at; the later word unless given. */
  join?(known: Name, told: Name): Name
  /** Whether any run of this kind waits at all: one look instead of one at each of many names. */
  anyWaits?(): Promise<boolean>
  wake(names: readonly Name[], now: Instant): Promise<Woken<Name>>
}
