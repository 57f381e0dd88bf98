import type { HandlerEnd } from './judge.ts'
import type { RemoteRun } from './remote-run.ts'
import type { Run } from './run.ts'

/** Has a handler perform these runs; says of each, once and not in this turn, how it ended. Throws nothing. */
export type Perform = (runs: RemoteRun[], ended: (run: RemoteRun, end: HandlerEnd) => void) => void

export type RunHandler = (run: Run) => unknown

export function oneByOne(handler: RunHandler): Perform {
  return ([run], ended) => {
    if (!run) return
    settle(
      () => handler(run),
      (end) => ended(run, end),
    )
  }
}

export function settle(handle: () => unknown, ended: (end: HandlerEnd) => void): void {
  let returned: unknown
  let isPending: boolean
  try {
    returned = handle()
    isPending = isThenable(returned)
  } catch (threw) {
    queueMicrotask(() => ended({ threw }))
    return
  }
  if (isPending) {
    // Not every thenable keeps the rules of a promise: settle once, throw nothing.
    Promise.resolve(returned).then(
      (value) => ended({ returned: value }),
      (threw) => ended({ threw }),
    )
  } else {
    // Not in this turn: a synchronous handler must not recurse through a long backlog.
    queueMicrotask(() => ended({ returned }))
  }
}

const isThenable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
