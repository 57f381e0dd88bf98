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
import { whileSending } from '../store/while-sending.ts'
import { NEVER_DUE } from '../timers/lock-timer.sql.ts'
import type { JobGraph } from './job-graph.ts'
import { Misplaced } from './misplaced.ts'
import type { NewOneOff, Sending } from './put-jobs.sql.ts'
import type { Prepared } from './put-prepared.ts'
import { overlapOfChain } from './understand-after.ts'

/** What a call says beside its jobs. */
export interface CallLinks {
  graph: JobGraph | null
  batch: { id: string; name: string | null; createdBy: string | null } | null
}

type Kind = 'one_off' | 'recurring'

/** So many are made while the database is at work on those before, and others have their turn in between. */
const JOBS_AT_A_TIME = 1_000
const EDGES_AT_A_TIME = 5_000

/**
 * Ties the jobs of a call to those that they wait for, in the transaction that is about to insert them. The rows of parents that
 * are there already are marked and held; jobs that wait are born so; and parents that have ended are put into the outbox, as if
 * they ended now, so that there is one way in which a child hears of an end. Answers whether something stands there.
 */
export async function linkJobs(
  tx: Queryable,
  prepared: readonly Prepared[],
  links: CallLinks,
  { idOf, now, sending: how }: { idOf(item: Prepared): string | null; now: Instant; sending: Sending },
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
  const sending = call.isAllFresh ? how : 'again'
  await whileSending(call.link(now), (edges) => insertEdges(tx, edges, sending))
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
  readonly isAllFresh: boolean
  readonly #prepared: readonly Prepared[]
  readonly #links: CallLinks
  readonly #ids: readonly string[]
  readonly #isFresh: readonly boolean[]
  readonly #kinds: Kind[] = []
  readonly #parentIds: (readonly string[])[] = []
  /** What the batch counts: two of the call may be one job. */
  readonly #counted = new Set<string>()

  constructor(prepared: readonly Prepared[], links: CallLinks, idOf: (item: Prepared) => string | null) {
    this.#prepared = prepared
    this.#links = links
    const answers = prepared.map(idOf)
    this.#ids = prepared.map(({ job }, i) => answers[i] ?? job.jobId)
    this.#isFresh = answers.map((answer) => answer === null)
    this.isAllFresh = !this.#isFresh.includes(false)
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

  /**
   * Gives the jobs that wait, and those that are waited for, the form in which they are born. Answers their edges, a bounded number
   * of jobs at a time.
   */
  *link(now: Instant): Generator<NewEdge[]> {
    const awaited = new Set<string>()
    this.#prepared.forEach((_, i) => {
      if (this.#isFresh[i]) for (const parent of this.#parents(i)) awaited.add(parent)
    })
    let edges: NewEdge[] = []
    for (let i = 0, jobs = 0; i < this.#prepared.length; i++, jobs++) {
      if (jobs === JOBS_AT_A_TIME || edges.length >= EDGES_AT_A_TIME) {
        yield edges
        edges = []
        jobs = 0
      }
      const item = this.#prepared[i] as Prepared
      const isCounted = this.#links.batch !== null && !this.#closesBatch(i)
      if (this.#isFresh[i]) this.#linkOne(item, i, { now, edges })
      if (isCounted) this.#count(this.#ids[i] as string, item.job.tenantId, edges)
      if (this.#isFresh[i]) item.job.hasDependents = isCounted || awaited.has(item.job.jobId)
    }
    yield edges
  }

  #count(parent: string, tenantId: number, edges: NewEdge[]): void {
    if (this.#counted.has(parent)) return
    this.#counted.add(parent)
    edges.push({ parent, child: this.#links.batch?.id as string, tenantId, ...BATCH })
  }

  #linkOne(item: Prepared, i: number, { now, edges }: { now: Instant; edges: NewEdge[] }): void {
    const { definition } = item.understood
    const { job } = item
    const { after } = definition
    if (this.#links.batch !== null && !this.#closesBatch(i)) definition.batchId = this.#links.batch.id
    if (after !== undefined) {
      const parents = this.#parents(i)
      job.definitionJson = withAfter(job.definitionJson, definition, { ...after, jobs: parents }, this.#refsOf(i))
      const isChain = this.#kinds[i] === 'recurring'
      const [wanted, onFailure] = [wantedOf(after), onFailureOf(after)]
      const kind = isChain ? CHILD_KIND.chain : CHILD_KIND.one_off
      const childNominal = isChain ? null : now
      const { jobId: child, tenantId } = job
      for (const parent of after.batch === undefined ? parents : [after.batch])
        edges.push({ parent, child, tenantId, kind, childNominal, wanted, onFailure })
      if (isChain || job.kind === 'recurring') item.job = chainOf(item)
      else becomeDependent(job, now)
    }
    if (definition.batchId !== undefined)
      item.job.definitionJson = `${item.job.definitionJson.slice(0, -1)},"batchId":"${definition.batchId}"}`
  }

  batchRow({ id, name, createdBy }: NonNullable<CallLinks['batch']>) {
    const closing = this.#prepared.findIndex((_, i) => this.#closesBatch(i))
    const tenantId = this.#prepared[0]?.job.tenantId ?? 0
    return {
      id,
      name,
      createdBy,
      tenantId,
      total: this.#counted.size,
      onFinish: closing === -1 ? null : (this.#ids[closing] as string),
    }
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

  /** The local names of its parents, by id, as they are stored. */
  #refsOf(i: number): string {
    let refs = ''
    for (const name of this.#links.graph?.parentsOf[i] ?? []) {
      if (typeof name !== 'number') continue
      const ref = this.#prepared[name]?.understood.ref
      if (ref != null) refs += `${refs === '' ? '' : ','}"${this.#ids[name]}":${JSON.stringify(ref)}`
    }
    return refs
  }

  #closesBatch(i: number): boolean {
    return closesBatch(this.#prepared[i] as Prepared)
  }
}

/** The job that runs when all others of the batch have finished. */
export const closesBatch = ({ understood }: Prepared): boolean => understood.definition.after?.batch !== undefined

/**
 * The stored text with what the job waits for, whose names have become ids. Not from the object: its payload is the caller's, and
 * what is stored was judged as text. There a queue stands first, and then what the call said, if it said it.
 */
function withAfter(json: string, definition: Definition, after: After, refs: string): string {
  const head = `{"queue":${JSON.stringify(definition.queue)}`
  const said = `,"after":${JSON.stringify(definition.after)}`
  definition.after = after
  const text = JSON.stringify(after)
  const stored = `,"after":${refs === '' ? text : `${text.slice(0, -1)},"refs":{${refs}}}`}`
  const rest = json.slice(head.length)
  return head + stored + (rest.startsWith(said) ? rest.slice(said.length) : rest)
}

/** Changed, not copied: a call may have ten thousand. Its turn comes when it is ready; until then its fairness key stands there. */
function becomeDependent(job: NewOneOff, now: Instant): void {
  job.kind = 'immediate'
  job.dueAt = now
  job.turn = job.fairnessKey ?? 0
  job.state = RUN_STATE.dependent
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
