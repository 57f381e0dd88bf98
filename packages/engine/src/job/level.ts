import { isKeyed } from './states.ts'

export const PRIORITIES = 10
export const LEVELS = 2 * PRIORITIES

/** Ready runs stand in levels: one per priority, and again one per priority for those that have a key, which are claimed apart. */
export const levelOf = (run: { priority: number; delivery: number }): number =>
  run.priority + (isKeyed(run.delivery) ? PRIORITIES : 0)

export const hasKey = (level: number): boolean => level >= PRIORITIES
