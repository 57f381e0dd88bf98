import type { After } from './definition.ts'
import { OUTCOME } from './states.ts'

/** Which ends of a parent a child waits for. */
export const WANTED = { success: 0, failure: 1, finish: 2 } as const
/** What becomes of a child that waits for success when a parent does not succeed. */
export const ON_PARENT_FAILURE = { cancel: 0, run: 1, block: 2 } as const
/** What waits: the run of a one-off, a job that gets a run for each run of its parents, or a batch that counts its jobs. */
export const CHILD_KIND = { one_off: 0, chain: 1, batch: 2 } as const

export type Wanted = keyof typeof WANTED
export type OnParentFailure = keyof typeof ON_PARENT_FAILURE

export const wantedOf = ({ on }: Pick<After, 'on'>): number => WANTED[on ?? 'success']
export const onFailureOf = ({ onParentFailure }: Pick<After, 'onParentFailure'>): number =>
  ON_PARENT_FAILURE[onParentFailure ?? 'cancel']

/** What an end of a parent means to a child: it waits no longer for it; the parent failed it; or it has nothing to do any more. */
export type Meaning = 'satisfied' | 'broken' | 'needless'

/**
 * A parent that was canceled has failed. One that was skipped has neither succeeded nor failed: whoever waits for its success
 * will not get it, and whoever waits for its failure has nothing to do.
 */
export function meaningOf(outcome: number, { wanted, onFailure }: { wanted: number; onFailure: number }): Meaning {
  if (wanted === WANTED.finish) return 'satisfied'
  if (wanted === WANTED.failure) return FAILURES.has(outcome) ? 'satisfied' : 'needless'
  if (outcome === OUTCOME.succeeded || onFailure === ON_PARENT_FAILURE.run) return 'satisfied'
  return 'broken'
}

const FAILURES: ReadonlySet<number> = new Set([OUTCOME.failed, OUTCOME.lost, OUTCOME.canceled])
