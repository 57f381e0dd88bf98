import { awaitParents, type FoundJob, findParents } from '../dependencies/await-parents.sql.ts'
import { insertBatch } from '../dependencies/batches.sql.ts'
import { insertEdges, type NewEdge } from '../dependencies/edges.sql.ts'
import { type End, putEnds } from '../dependencies/outbox.sql.ts'
import { CHILD_KIND, onFailureOf, WANTED, wantedOf } from '../job/after.ts'
import type { After, Definition } from '../job/definition.ts'
import { createdAtOf } from '../job/ids.ts'
import { OUTCOME, OVERLAP, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { NEVER_DUE } from '../timers/lock-timer.sql.ts'
import type { JobGraph } from './job-graph.ts'
import { Misplaced } from './misplaced.ts'
import type { Prepared } from './put-prepared.ts'
import { overlapOfChain } from './understand-after.ts'

/** What a call says beside its jobs. */
export interface CallLinks {
  graph: JobGraph | null
  batch: { id: string; name: string | null; createdBy: string | null } | null
}

type Kind = 'one_off' | 'recurring'

/**
 * Ties the jobs of a call to those that they wait for, in the transaction that is about to insert them. The rows of parents that
 * are there already are marked and held; jobs that wait are born so; and parents that have ended are put into the outbox, as if
 * they ended now, so that there is one way in which a child hears of an end. Answers whether something stands there.
 */
export async function linkJobs(
  tx: Queryable,
  prepared: readonly Prepared[],
  links: CallLinks,
  { idOf, now }: { idOf(item: Prepared): string | null; now: Instant },
): Promise<boolean> {
  const call = new Call(prepared, links, idOf)
  const outside = call.outside()
  const found = outside.length === 0 ? new Map<string, FoundJob>() : await findParents(tx, outside)
  call.judge(found)
  const { ends, forgotten } = await awaitParents(tx, {
    oneOffs: outside.filter((jobId) => found.get(jobId)?.isRecurring === false),
    recurring: outside.filter((jobId) => found.get(jobId)?.isRecurring),
  })
  call.mustBeKnown(new Set(forgotten))
  call.mark(now)
  await insertEdges(tx, call.edges)
  await putEnds(tx, [...ends, ...forgotten.map(endedLongAgo)])
  if (links.batch) await insertBatch(tx, call.batchRow(links.batch), now)
  return ends.length + forgotten.length > 0
}

/** Whoever waits for it only wants it to be over. */
const endedLongAgo = (jobId: string): End => ({
  jobId,
  nominalAt: createdAtOf(jobId),
  number: 0,
  outcome: OUTCOME.succeeded,
})

class Call {
  readonly edges: NewEdge[] = []
  readonly #prepared: readonly Prepared[]
  readonly #links: CallLinks
  readonly #ids: readonly string[]
  readonly #isFresh: readonly boolean[]
  readonly #kinds: Kind[] = []
  readonly #parentIds: (readonly string[])[] = []
  readonly #awaited = new Set<string>()

  constructor(prepared: readonly Prepared[], links: CallLinks, idOf: (item: Prepared) => string | null) {
    this.#prepared = prepared
    this.#links = links
    this.#ids = prepared.map((item) => idOf(item) ?? item.job.jobId)
    this.#isFresh = prepared.map((item) => idOf(item) === null)
  }

  /** Jobs that somebody of the call waits for and that are there already. */
  outside(): string[] {
    const ids = new Set<string>()
    const isFresh = new Set(this.#ids.filter((_, i) => this.#isFresh[i]))
    this.#prepared.forEach((_, i) => {
      const awaited = this.#isFresh[i] ? this.#parents(i) : this.#links.batch ? [this.#ids[i] as string] : []
      for (const jobId of awaited) if (!isFresh.has(jobId)) ids.add(jobId)
    })
    return [...ids]
  }

  /** Who is a one-off and who follows a recurring job; throws if somebody waits for what is not there, or for both kinds. */
  judge(found: ReadonlyMap<string, FoundJob>): void {
    const order = this.#links.graph?.order ?? this.#prepared.keys()
    const kindById = new Map<string, Kind>()
    for (const i of order) {
      const kind = this.#kindOf(i, found, kindById)
      this.#kinds[i] = kind
      kindById.set(this.#ids[i] as string, kind)
      if (this.#links.batch && kind === 'recurring' && !this.#closesBatch(i))
        throw new Misplaced(i, { path: '', message: 'is recurring: it never finishes, so no batch can count it' })
    }
  }

  #kindOf(i: number, found: ReadonlyMap<string, FoundJob>, known: ReadonlyMap<string, Kind>): Kind {
    const { job, understood } = this.#prepared[i] as Prepared
    const id = this.#ids[i] as string
    if (!this.#isFresh[i]) return found.get(id)?.isRecurring ? 'recurring' : 'one_off'
    const { after, overlap } = understood.definition
    if (after === undefined || after.batch !== undefined) return job.kind === 'recurring' ? 'recurring' : 'one_off'
    const kinds = this.#parents(i).map(
      (parent, n) => known.get(parent) ?? kindOfFound(parent, { position: i, n, tenantId: job.tenantId }, found),
    )
    const isChain = kinds[0] === 'recurring'
    const other = kinds.findIndex((kind) => kind !== kinds[0])
    if (other !== -1)
      throw new Misplaced(i, {
        path: `after.jobs[${other}]`,
        message: isChain ? ONE_OFF_AMONG_RECURRING : RECURRING_AMONG_ONE_OFFS,
      })
    if (!isChain && overlap !== undefined)
      throw new Misplaced(i, { path: 'overlap', message: 'only makes sense for a job that follows recurring ones' })
    if (isChain && after.onParentFailure === 'block')
      throw new Misplaced(i, { path: 'onParentFailure', message: NO_BLOCK })
    return isChain ? 'recurring' : 'one_off'
  }

  /** Nobody can say how these ended: that is enough for whoever waits for any end. */
  mustBeKnown(forgotten: ReadonlySet<string>): void {
    if (forgotten.size === 0) return
    this.#prepared.forEach(({ understood }, i) => {
      const { after } = understood.definition
      if (after === undefined || after.on === 'finish' || !this.#isFresh[i]) return
      const n = this.#parents(i).findIndex((parent) => forgotten.has(parent))
      if (n === -1) return
      const message = 'ended so long ago that nobody knows how: wait for it with on "finish"'
      throw new Misplaced(i, { path: `after.jobs[${n}]`, message })
    })
  }

  /** Gives the jobs that wait, and those that are waited for, the form in which they are born. */
  mark(now: Instant): void {
    const { batch } = this.#links
    this.#prepared.forEach((item, i) => {
      if (this.#isFresh[i]) this.#linkOne(item, i, now)
      if (batch && !this.#closesBatch(i)) this.#wait(this.#ids[i] as string, batch.id, item.job.tenantId, BATCH)
    })
    this.#prepared.forEach(({ job }, i) => {
      if (!this.#isFresh[i]) return
      job.hasDependents = this.#awaited.has(job.jobId)
    })
  }

  #linkOne(item: Prepared, i: number, now: Instant): void {
    const { batch } = this.#links
    const { definition } = item.understood
    const { job } = item
    const { after } = definition
    if (batch && !this.#closesBatch(i)) definition.batchId = batch.id
    if (after !== undefined) {
      const parents = this.#parents(i)
      definition.after = { ...after, jobs: parents, ...this.#refsOf(i) }
      const isChain = this.#kinds[i] === 'recurring'
      const terms = { wanted: wantedOf(after), onFailure: onFailureOf(after) }
      const kind = isChain ? CHILD_KIND.chain : CHILD_KIND.one_off
      for (const parent of after.batch === undefined ? parents : [after.batch])
        this.#wait(parent, job.jobId, job.tenantId, { ...terms, kind, childNominal: isChain ? null : now })
      item.job = isChain
        ? chainOf(item)
        : { ...job, kind: 'immediate', dueAt: now, turn: 0, hasDependents: false, state: RUN_STATE.dependent }
    }
    if (after !== undefined || definition.batchId !== undefined)
      item.job.definitionJson = definitionWith(item.understood.definitionJson, definition)
  }

  #wait(parent: string, child: string, tenantId: number, terms: Omit<NewEdge, 'parent' | 'child' | 'tenantId'>): void {
    this.#awaited.add(parent)
    this.edges.push({ parent, child, tenantId, ...terms })
  }

  batchRow({ id, name, createdBy }: NonNullable<CallLinks['batch']>) {
    const closing = this.#prepared.findIndex((_, i) => this.#closesBatch(i))
    const total = this.edges.filter(({ child }) => child === id).length
    const tenantId = this.#prepared[0]?.job.tenantId ?? 0
    return { id, name, createdBy, tenantId, total, onFinish: closing === -1 ? null : (this.#ids[closing] as string) }
  }

  /** Ids, each once: two names may turn out to be the same job. */
  #parents(i: number): readonly string[] {
    const known = this.#parentIds[i]
    if (known !== undefined) return known
    const names = this.#links.graph?.parentsOf[i] ?? []
    const found = [...new Set(names.map((name) => (typeof name === 'number' ? (this.#ids[name] as string) : name)))]
    this.#parentIds[i] = found
    return found
  }

  #refsOf(i: number): Pick<After, 'refs'> {
    const refs: Record<string, string> = {}
    for (const name of this.#links.graph?.parentsOf[i] ?? []) {
      if (typeof name !== 'number') continue
      const ref = this.#prepared[name]?.understood.ref
      if (ref != null) refs[this.#ids[name] as string] = ref
    }
    return Object.keys(refs).length === 0 ? {} : { refs }
  }

  #closesBatch(i: number): boolean {
    return this.#prepared[i]?.understood.definition.after?.batch !== undefined
  }
}

/** Not from the object: its payload is the caller's, and what is stored was judged as text. */
function definitionWith(json: string, { after, batchId }: Pick<Definition, 'after' | 'batchId'>): string {
  const stored = JSON.parse(json) as Definition
  return JSON.stringify({ ...stored, ...(after && { after }), ...(batchId && { batchId }) })
}

const RECURRING_AMONG_ONE_OFFS =
  'is recurring, and the first is a one-off: a job waits for one-offs, or follows recurring jobs'
const ONE_OFF_AMONG_RECURRING =
  'is a one-off, and the first is recurring: a job waits for one-offs, or follows recurring jobs'
const NO_BLOCK = 'cannot be block for a job that follows recurring ones: each of its times is decided once'
const BATCH = { kind: CHILD_KIND.batch, wanted: WANTED.finish, onFailure: 0, childNominal: null }

/** A job that gets a run for each run of others has no time of its own. */
function chainOf({ job, understood }: Prepared): Prepared['job'] {
  return {
    ...job,
    kind: 'recurring',
    dueAt: NEVER_DUE,
    nominalAt: null,
    scheduleId: null,
    overlap: OVERLAP[overlapOfChain(understood.definition)],
    jitterMs: 0,
    maxRuns: null,
    hasDependents: false,
  }
}

function kindOfFound(
  parent: string,
  { position, n, tenantId }: { position: number; n: number; tenantId: number },
  found: ReadonlyMap<string, FoundJob>,
): Kind {
  const path = `after.jobs[${n}]`
  const job = found.get(parent)
  // Another tenant's job is answered like one that does not exist.
  if (job === undefined || job.tenantId !== tenantId)
    throw new Misplaced(position, { path, message: `there is no job ${parent}` }, 'not_found')
  if (!job.hasFuture)
    throw new Misplaced(position, { path, message: `job ${parent} has no future any more: nothing can follow it` })
  return job.isRecurring ? 'recurring' : 'one_off'
}
