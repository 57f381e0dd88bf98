import type { Clock } from '../../runtime/clock.ts'
import type { ActiveRun } from './active-run.ts'
import type { Handler } from './perform-handler.ts'
import { Verdict } from './verdict.ts'

/**
 * Performs many runs in one call. What it throws, or a verdict that it returns, holds for all of them. An array tells of each
 * run by its place, a Map by the run or its id: a result, a verdict, or an error. Whoever is not mentioned has succeeded.
 */
export type BatchHandler = (runs: ActiveRun[]) => unknown

export interface BatchTerms {
  /** How many calls are under way at most. */
  calls: number
  /** How many runs one call takes. */
  size: number
  /** How long a call that could begin waits for more runs than it has. */
  waitMs: number
}

interface Gathered {
  run: ActiveRun
  resolve(returned: unknown): void
  reject(threw: unknown): void
}

/** A handler of single runs that gathers them for one of batches; the pool has a slot for each run of each call. */
export function inBatches(handler: BatchHandler, { calls, size, waitMs }: BatchTerms, clock: Clock): Handler {
  let gathered: Gathered[] = []
  let underWay = 0
  let isPlanned = false
  let isDue = false

  const plan = () => {
    if (isPlanned) return
    isPlanned = true
    const due = () => {
      isPlanned = false
      isDue = true
      sendAll()
    }
    if (waitMs > 0) clock.timer(waitMs, due)
    else setImmediate(due)
  }
  const sendAll = () => {
    while (underWay < calls && gathered.length > 0 && (isDue || gathered.length >= size)) {
      const batch = gathered.slice(0, size)
      gathered = gathered.slice(size)
      void send(batch)
    }
    isDue &&= gathered.length > 0
    if (gathered.length > 0 && underWay < calls) plan()
  }
  const send = async (batch: readonly Gathered[]) => {
    underWay++
    const runs = batch.map(({ run }) => run)
    try {
      const tell = saidOf(await handler([...runs]), runs)
      batch.forEach(({ run, resolve, reject }, place) => {
        const said = tell(run, place)
        if (said instanceof Error && !(said instanceof Verdict)) reject(said)
        else resolve(said)
      })
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    underWay--
    sendAll()
  }
  return (run) =>
    new Promise((resolve, reject) => {
      gathered.push({ run, resolve, reject })
      sendAll()
    })
}

function saidOf(returned: unknown, runs: readonly ActiveRun[]): (run: ActiveRun, place: number) => unknown {
  if (returned instanceof Verdict) return () => returned
  if (returned instanceof Map) {
    const said: ReadonlyMap<unknown, unknown> = returned
    return (run) => (said.has(run) ? said.get(run) : said.get(run.id))
  }
  // An array of another length is about something else than the runs.
  if (Array.isArray(returned) && returned.length === runs.length) return (_run, place) => returned[place]
  return () => undefined
}
