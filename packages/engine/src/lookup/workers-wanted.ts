/** What is assumed of a queue of which nothing has ended lately: a second for each attempt. */
const ASSUMED_SERVICE_MS = 1_000

export interface Load {
  /** Runs that wait for a worker. */
  backlog: number
  /** Runs that are being performed. */
  running: number
  /** How long an attempt took lately, on average; null: none has ended. */
  serviceMs: number | null
  arrivalsPerSecond: number
  /** In what time the backlog shall be worked off. */
  targetLagMs: number
  /** How many runs one worker performs at once. */
  perWorker: number
}

/**
 * How many workers a queue needs. By Little's law arrivals keep `arrivals × service time` slots busy; the backlog needs
 * `backlog × service time ÷ target lag` more to be gone in time. Whatever comes out, runs that are being performed keep their
 * slots, and there is never a slot more than runs that could use it: those waiting, those performed, and those that will have
 * come within the target lag.
 */
export function workersWanted(load: Load): { workers: number; slots: number } {
  const { backlog, running, arrivalsPerSecond, targetLagMs, perWorker } = load
  const serviceMs = load.serviceMs ?? ASSUMED_SERVICE_MS
  const pace = (arrivalsPerSecond * serviceMs) / 1_000
  const catchUp = Math.min(backlog, (backlog * serviceMs) / targetLagMs)
  const soon = Math.floor((arrivalsPerSecond * targetLagMs) / 1_000)
  // Something waits, so somebody must come, however quickly it will be done.
  const needed = Math.max(running, Math.ceil(pace + catchUp), Math.min(1, backlog))
  const slots = Math.min(needed, backlog + running + soon)
  return { slots, workers: Math.ceil(slots / perWorker) }
}
