import { BelfryError } from '../errors.ts'
import { CHILD_KIND } from '../job/after.ts'
import type { Definition } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable, Transaction } from '../store/database.ts'
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
const LOCK_TIMEOUT_MS = 200

/**
 * Runs were opened again, in this transaction. Nobody is told any more that they failed; children that are blocked because of that
 * wait again; those that they ended are opened again, unless another parent has failed them too or their unique key is another's by
 * now, and with them their own children, generation by generation. What ran because of the failure has run. Answers whether there
 * are more generations: for those something stands in the outbox.
 */
export async function reopenChildren(
  tx: Queryable,
  runs: readonly Child[],
  deps: ReopenDeps,
  now: Instant,
): Promise<boolean> {
  let parents = runs
  for (let generation = 0, opened = 0; parents.length > 0; generation++, opened += parents.length) {
    await takeBackEnds(tx, parents)
    if (generation === MAX_GENERATIONS || opened > MAX_RUNS) {
      await putOpened(tx, parents)
      return true
    }
    const edges = await readBrokenEdges(
      tx,
      parents.map(({ jobId }) => jobId),
    )
    if (edges.length === 0) return false
    const ended = edges.filter(({ kind, state }) => kind !== CHILD_KIND.batch && state === EDGE_STATE.canceled)
    // Held before they are changed: of two who open two parents at once, the second sees that the first has.
    const children = childrenOf(ended)
    if (ended.length > 0) await lockCanceled(tx, [...children.keys()])
    await markEdges(tx, edges, EDGE_STATE.open)
    await countInBatches(tx, countsOf(edges), now)
    if (ended.length === 0) return false
    for (const stillFailed of await lockCanceled(tx, [...children.keys()])) children.delete(stillFailed)
    const free = await withTheirKeys(tx, await readCanceled(tx, [...children.values()]), deps.retakeUnique)
    const queued: QueuedChild[] = []
    for (const child of free) queued.push({ ...child, queueId: await deps.queueIdOf(child.tenantId, child.definition) })
    parents = await insertReopened(tx, queued)
  }
  return false
}

/**
 * Without those whose unique key another job has by now: they stay canceled. Whoever holds such a key may wait for a run that is held
 * here; the lock timeout of this transaction ends that.
 */
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
  await tx.setLockTimeout(LOCK_TIMEOUT_MS)
  await deleteEnds(tx, opened)
  await reopenChildren(tx, opened, deps, now)
  const { ends } = await awaitParents(tx, { oneOffs: opened.map(({ jobId }) => jobId), recurring: [] })
  await putEnds(tx, ends)
}

/** By their ids. */
const childrenOf = (edges: readonly BrokenEdge[]): Map<string, Child> =>
  new Map(edges.map(({ child, childNominal }) => [child, { jobId: child, nominalAt: childNominal as Instant }]))

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
