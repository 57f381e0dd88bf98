import { CHILD_KIND } from '../job/after.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { type Counts, countInBatches, countOf, noCounts } from './batches.sql.ts'
import { type Child, lockCanceled } from './children.sql.ts'
import { EDGE_STATE, markEdges } from './edges.sql.ts'
import { takeBackEnds } from './outbox.sql.ts'
import { type BrokenEdge, insertReopened, readBrokenEdges } from './reopen-children.sql.ts'

/**
 * A run was opened again, in this transaction. Nobody is told any more that it failed; children that are blocked because of that
 * wait again; those that it ended are opened again, unless another parent has failed them too, and with them their own
 * children, generation by generation. What ran because of the failure has run. Answers how many were opened.
 */
export async function reopenChildren(tx: Queryable, run: Child, now: Instant): Promise<number> {
  let opened = 0
  for (let parents: Child[] = [run]; parents.length > 0; ) {
    await takeBackEnds(tx, parents)
    const edges = await readBrokenEdges(
      tx,
      parents.map(({ jobId }) => jobId),
    )
    if (edges.length === 0) return opened
    const ended = edges.filter(({ kind, state }) => kind !== CHILD_KIND.batch && state === EDGE_STATE.canceled)
    // Held before they are changed: of two who open two parents at once, the second sees that the first has.
    if (ended.length > 0) await lockCanceled(tx, childrenOf(ended))
    await markEdges(tx, edges, EDGE_STATE.open)
    await countInBatches(tx, countsOf(edges), now)
    if (ended.length === 0) return opened
    const stillFailed = await lockCanceled(tx, childrenOf(ended))
    parents = await insertReopened(
      tx,
      childrenOf(ended).filter((child) => !stillFailed.has(child)),
    )
    opened += parents.length
  }
  return opened
}

const childrenOf = (edges: readonly BrokenEdge[]): string[] => [...new Set(edges.map(({ child }) => child))]

/** What the batches no longer count as ended. */
function countsOf(edges: readonly BrokenEdge[]): Map<string, Counts> {
  const counts = new Map<string, Counts>()
  for (const { kind, child, state } of edges) {
    if (kind !== CHILD_KIND.batch) continue
    const of = counts.get(child) ?? noCounts()
    of[countOf(state)]--
    counts.set(child, of)
  }
  return counts
}
