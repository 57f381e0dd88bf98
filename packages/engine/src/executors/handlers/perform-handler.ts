import type { Beginnings } from '../beginnings.ts'
import type { ActiveRun } from './active-run.ts'
import type { Perform } from './handler-pool.ts'
import type { End } from './judge.ts'

/** What users write: it may return anything, a promise of it, or throw. */
export type Handler = (run: ActiveRun) => unknown

export function performHandler(handler: Handler, beginnings: Beginnings): Perform {
  return (run, done) =>
    beginnings.sayIfNeeded(run.lease, run.startedAt, (at) => {
      if (!run.begin(at)) return done(notBegun(run))
      run.start(at ?? run.startedAt)
      call(handler, run, done)
    })
}

/** It was given up before its work began. */
export const notBegun = ({ aborted }: ActiveRun): End =>
  aborted === 'canceled' ? { threw: new Error('canceled before it began') } : { notBegun: true }

function call(handler: Handler, run: ActiveRun, done: (end: End) => void): void {
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

const isThenable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
