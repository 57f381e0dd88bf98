import type { ActiveRun } from './active-run.ts'
import type { Perform } from './handler-pool.ts'

/** What users write: it may return anything, a promise of it, or throw. */
export type Handler = (run: ActiveRun) => unknown

export function performHandler(handler: Handler): Perform {
  return (run, done) => {
    let returned: unknown
    let isPending: boolean
    try {
      returned = handler(run)
      isPending = isThenable(returned)
    } catch (threw) {
      done({ threw })
      return
    }
    if (!isPending) done({ returned })
    // Not every thenable keeps the rules of a promise: settle once, throw nothing.
    else
      Promise.resolve(returned).then(
        (value) => done({ returned: value }),
        (threw) => done({ threw }),
      )
  }
}

const isThenable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
