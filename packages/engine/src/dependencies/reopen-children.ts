import { BelfryError } from '../errors.ts'
import { CHILD_KIND } from '../job/after.ts'
import type { Definition } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable, Transaction } from '../store/database.ts'
import { inProgress, isLockTimeout } from '../store/database-errors.ts'
import { awaitParents } from './await-parents.sql.ts'
import { type Counts, countInBatches, countOf, noCounts } from './batches.sql.ts'
import { type Child, lockCanceled } from './children.sql.ts'
import { EDGE_STATE, markEdges } from './edges.sql.ts'
import { deleteEnds, type HeldEnd, putEnds, putOpened, takeBackEnds } from './outbox.sql.ts'
import {
  type BrokenEdge,
  type CanceledChild,
  insertReopened,
  type QueuedChild,
  readBrokenEdges,
  readCanceled,
} from './reopen-children.sql.ts'

export interface ReopenDeps {
  /** A run of the job is about to be opened again: throws `unique_conflict` if another job has its unique key by now. */
  retakeUnique(tx: Queryable, jobId: string): Promise<void>
  /** The queue that a definition names. */
  queueIdOf(tenantId: number, definition: Definition): Promise<number>
}

/** Of one transaction; those after them follow behind it, so that a chain of ten thousand jobs is opened in short ones. */
const MAX_GENERATIONS = 10
const MAX_RUNS = 5_000
/** For so long a generation waits for what another transaction holds: that one may wait for a generation that is held here. */
const PATIENCE_MS = 100
/** The rows of batches come last: no transaction waits for anything while it holds them. */
const BATCH_PATIENCE_MS = 1_000

/** How far it came: all that follows is open, or the rest stands in the outbox for later, or nothing could be opened. */
type Reopened = 'whole' | 'in part' | 'nothing'

/**
 * Runs were opened again, in this transaction. Nobody is told any more that they failed; children that are blocked because of that
 * wait again; those that they ended are opened again, unless another parent has failed them too or their unique key is another's by
 * now, and with them their own children, generation by generation. What ran because of the failure has run. A generation of which
 * another transaction holds something is left for later, with those after it: something stands in the outbox for it then.
 */
export async function reopenChildren(
  tx: Transaction,
  runs: readonly Child[],
  deps: ReopenDeps,
  now: Instant,
): Promise<Reopened> {
  const counts = new Map<string, Counts>()
  let parents = runs
  let [generation, opened] = [0, 0]
  await tx.setLockTimeout(PATIENCE_MS)
  for (; parents.length > 0; generation++, opened += parents.length) {
    const next = generation === MAX_GENERATIONS || opened > MAX_RUNS ? null : await openChildrenOf(tx, parents, deps)
    if (next === null) {
      await putOpened(tx, parents)
      break
    }
    addCounts(counts, next.edges)
    parents = next.opened
  }
  await tx.setLockTimeout(BATCH_PATIENCE_MS)
  await countInBatches(tx, counts, now)
  if (parents.length === 0) return 'whole'
  return generation === 0 ? 'nothing' : 'in part'
}

/** One generation; null: another transaction holds something of it, and nothing of it was done. */
async function openChildrenOf(
  tx: Transaction,
  parents: readonly Child[],
  { retakeUnique, queueIdOf }: ReopenDeps,
): Promise<{ edges: readonly BrokenEdge[]; opened: readonly Child[] } | null> {
  let edges: readonly BrokenEdge[] = []
  let opened: readonly Child[] = []
  try {
    await tx.undoable(async () => {
      await takeBackEnds(tx, parents)
      edges = await readBrokenEdges(
        tx,
        parents.map(({ jobId }) => jobId),
      )
      if (edges.length === 0) return
      const ended = edges.filter(({ kind, state }) => kind !== CHILD_KIND.batch && state === EDGE_STATE.canceled)
      // Held before they are changed: of two who open two parents at once, the second sees that the first has.
      const children = childrenOf(ended)
      if (ended.length > 0) await lockCanceled(tx, [...children.keys()])
      await markEdges(tx, edges, EDGE_STATE.open)
      if (ended.length === 0) return
      for (const stillFailed of await lockCanceled(tx, [...children.keys()])) children.delete(stillFailed)
      const free = await withTheirKeys(tx, await readCanceled(tx, [...children.values()]), retakeUnique)
      const queued: QueuedChild[] = []
      for (const child of free) queued.push({ ...child, queueId: await queueIdOf(child.tenantId, child.definition) })
      opened = await insertReopened(tx, queued)
    })
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    return null
  }
  return { edges, opened }
}

/** Without those whose unique key another job has by now: they stay canceled. */
async function withTheirKeys(
  tx: Queryable,
  canceled: readonly CanceledChild[],
  retakeUnique: ReopenDeps['retakeUnique'],
): Promise<CanceledChild[]> {
  const kept: CanceledChild[] = []
  for (const child of canceled) {
    try {
      if (child.definition.unique !== undefined) await retakeUnique(tx, child.jobId)
      kept.push(child)
    } catch (error) {
      if (!(error instanceof BelfryError && error.code === 'unique_conflict')) throw error
    }
  }
  return kept
}

/**
 * Goes on behind runs that were opened before. One of them may have ended meanwhile, and told nobody: that is made good, as for jobs
 * that begin to wait now.
 */
export async function reopenFurther(
  tx: Transaction,
  opened: readonly HeldEnd[],
  deps: ReopenDeps,
  now: Instant,
): Promise<void> {
  await deleteEnds(tx, opened)
  // Held from here on, so none of them ends before its children wait for it again.
  const { ends } = await awaitParents(tx, { oneOffs: opened.map(({ jobId }) => jobId), recurring: [] })
  if ((await reopenChildren(tx, opened, deps, now)) === 'nothing') throw inProgress()
  await putEnds(tx, ends)
}

/** By their ids. */
const childrenOf = (edges: readonly BrokenEdge[]): Map<string, Child> =>
  new Map(edges.map(({ child, childNominal }) => [child, { jobId: child, nominalAt: childNominal as Instant }]))

/** What the batches no longer count as ended. */
function addCounts(counts: Map<string, Counts>, edges: readonly BrokenEdge[]): void {
  for (const { kind, child, state } of edges) {
    if (kind !== CHILD_KIND.batch) continue
    const of = counts.get(child) ?? noCounts()
    of[countOf(state)]--
    counts.set(child, of)
  }
}
