import { DELIVERY } from './states.ts'

export const PRIORITIES = 10
export const LEVELS = 2 * PRIORITIES

/**
 * Ready runs stand in levels: one per priority, and again one per priority for those that may be performed at most once,
 * which are claimed apart because they are never leased ahead of a free slot.
 */
export const levelOf = (run: { priority: number; delivery: number }): number =>
  run.priority + (run.delivery === DELIVERY.at_most_once ? PRIORITIES : 0)

export const isAtMostOnce = (level: number): boolean => level >= PRIORITIES
