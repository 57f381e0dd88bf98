import type { HandlerEnd } from './judge.ts'
import { type Perform, settle } from './perform.ts'
import type { RemoteRun } from './remote-run.ts'
import type { Run } from './run.ts'
import { verdictIn } from './verdict.ts'

/**
 * Performs many runs in one call. What it throws, or a verdict that it returns, holds for all of them. An array tells of each
 * run by its place, a Map by the run or its id: a result, a verdict, or an error. Whoever is not mentioned has succeeded.
 */
export type BatchHandler = (runs: Run[]) => unknown

export function inBatches(handler: BatchHandler): Perform {
  return (runs, ended) => {
    settle(
      () => handler(runs.slice()),
      (end) => {
        const tell = endsOf(runs, end)
        runs.forEach((run, i) => {
          ended(run, tell(run, i))
        })
      },
    )
  }
}

function endsOf(runs: RemoteRun[], end: HandlerEnd): (run: RemoteRun, place: number) => HandlerEnd {
  if ('threw' in end || verdictIn(end.returned)) return () => end
  const { returned } = end
  if (returned instanceof Map) {
    const said: ReadonlyMap<unknown, unknown> = returned
    return (run) => endOf(said.has(run) ? said.get(run) : said.get(run.id))
  }
  // An array of another length is about something else than the runs.
  if (Array.isArray(returned) && returned.length === runs.length) return (_run, place) => endOf(returned[place])
  return () => ({ returned: undefined })
}

const endOf = (said: unknown): HandlerEnd => (said instanceof Error ? { threw: said } : { returned: said })
