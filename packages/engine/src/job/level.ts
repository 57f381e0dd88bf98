import { isKeyed, isOnce } from './states.ts'

export const PRIORITIES = 10
export const LEVELS = 3 * PRIORITIES

/**
 * Ready runs stand in levels: one per priority, again one per priority for those that may be performed at most once, which
 * are claimed apart because they are never leased ahead of a free slot, and once more for those that have a key.
 */
export const levelOf = (run: { priority: number; delivery: number }): number =>
  run.priority + (isKeyed(run.delivery) ? 2 * PRIORITIES : isOnce(run.delivery) ? PRIORITIES : 0)

export const isAtMostOnce = (level: number): boolean => level >= PRIORITIES && level < 2 * PRIORITIES
export const hasKey = (level: number): boolean => level >= 2 * PRIORITIES
