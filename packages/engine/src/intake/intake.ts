import { BelfryError, refusal } from '../errors.ts'
import { newJobId, shardOfJob } from '../job/ids.ts'
import { RUN_STATE } from '../job/states.ts'
import { Breather } from '../runtime/breather.ts'
import type { Instant } from '../runtime/clock.ts'
import { Lanes } from '../runtime/lanes.ts'
import { grouped } from '../runtime/maps.ts'
import { pause } from '../runtime/pause.ts'
import type { KnownQueueSettings } from '../shards/queue-settings.ts'
import { noTenant } from '../shards/registry.sql.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Database, Queryable, Transaction } from '../store/database.ts'
import { isOutage } from '../store/database-errors.ts'
import { namesPayload, PayloadMissing } from './announce-payloads.ts'
import { mustBoundEdges } from './bounded-edges.ts'
import { type Replacement, UniqueConflict } from './claim-unique.ts'
import { type Description, describeAfter, describeWhen } from './describe-when.ts'
import { jobGraph } from './job-graph.ts'
import { forgottenBefore } from './keys.sql.ts'
import type { CallLinks } from './link-jobs.ts'
import { Misplaced } from './misplaced.ts'
import { inPosition, Preparer, type PreparerDeps } from './preparer.ts'
import type { Sending } from './put-jobs.sql.ts'
import { type Put, type PutTerms, putKeyed } from './put-keyed.ts'
import { type Created, createdOf, MAX_BATCH, type Prepared, putAll, putSingly, rowsOf } from './put-prepared.ts'
import { type ReplaceDeps, replaceJob } from './replace-job.ts'
import type { Room, WhenFull } from './room.ts'
import { type BatchOptions, understandBatch } from './understand-batch.ts'
import { type UnderstandContext, type UnderstoodJob, understandJob } from './understand-job.ts'
import { withDefaults } from './with-defaults.ts'

export interface IntakeDeps extends PreparerDeps, ReplaceDeps {
  db: Database
  wakeups: Wakeups
  room: Room
  queueSettings: KnownQueueSettings
  historyDays: number
}

/** Whose jobs they are and who says so; without a tenant each job names its own, or is of the tenant `default`. */
export type Creator = Pick<UnderstandContext, 'tenant' | 'createdBy'>

/** A group of jobs that were created together. */
export interface CreatedBatch {
  batchId: string
  jobs: Created[]
}

interface Pending {
  prepared: Prepared
  /** Its caller waits until then, however long it has to wait for a lane. */
  until: Instant
  resolve(created: Created): void
  reject(error: unknown): void
}

const MAX_JOBS_PER_CALL = 10_000
const LANES = 2
/** How long a create is sent again while the database is away, before the caller is told. */
const PATIENCE_MS = 10_000
const RETRY_PAUSE_MS = 100

/**
 * New work. Ids are given here, before anything is sent, so that a batch whose commit is unknown can be sent again as it is.
 * Single creates that come together share a statement; each is answered after the commit that contains it.
 */
export class Intake {
  readonly #deps: IntakeDeps
  readonly #preparer: Preparer
  readonly #singles: Lanes<Pending>
  /** Of those that say something of a limit, which others may hold. */
  readonly #limited: Lanes<Pending>

  constructor(deps: IntakeDeps) {
    this.#deps = deps
    this.#preparer = new Preparer(deps)
    const lanes = { lanes: LANES, maxBatch: MAX_BATCH, work: (batch: Pending[]) => this.#putSingles(batch) }
    this.#singles = new Lanes(lanes)
    this.#limited = new Lanes(lanes)
  }

  async create(input: unknown, by: Creator = {}, whenFull: WhenFull = 'refuse'): Promise<Created> {
    const understood = await this.#understood(input, { ...by, now: this.#deps.clock.now() })
    return this.#putOne(this.#preparer.alone(understood) ?? (await this.#preparer.one(understood)), whenFull)
  }

  /** As `create`, and says when the job will run; null if it was there already, since that may have been changed. */
  async createDescribed(input: unknown, by: Creator): Promise<{ created: Created; description: Description | null }> {
    const understood = await this.#understood(input, { ...by, now: this.#deps.clock.now() })
    const prepared = this.#preparer.alone(understood) ?? (await this.#preparer.one(understood))
    const created = await this.#putOne(prepared, 'refuse')
    if (created.deduplicated) return { created, description: null }
    const { schedule, job } = prepared
    const compiled = schedule && this.#deps.schedules.of(schedule)
    if (understood.definition.after !== undefined)
      return { created, description: describeAfter(understood.definition.after, job.kind) }
    const after = job.kind === 'recurring' ? (job.nominalAt ?? 0) - 1 : job.dueAt
    return { created, description: describeWhen(understood.when, compiled, { after }) }
  }

  async #putOne(prepared: Prepared, whenFull: WhenFull): Promise<Created> {
    if (isTied(prepared)) {
      const { after } = prepared.understood.definition
      const links = after === undefined ? null : linksOf([prepared.understood])
      return (await this.#put([prepared], links, whenFull))[0] as Created
    }
    const { room } = this.#deps
    if (whenFull === 'refuse' && !room.isIdle) {
      await room.measure([prepared])
      room.admit([prepared])
    }
    const until = this.#deps.clock.now() + PATIENCE_MS
    const lanes = prepared.job.limitKey === null ? this.#singles : this.#limited
    return new Promise((resolve, reject) => lanes.push({ prepared, until, resolve, reject }))
  }

  /** All or nothing. */
  async createMany(inputs: unknown, by: Creator = {}, whenFull: WhenFull = 'refuse'): Promise<Created[]> {
    const { prepared, links } = await this.#prepareAll(inputs, 'runs', by)
    return withPosition(prepared, this.#put(prepared, links, whenFull))
  }

  /** The same, as one group: it counts how its jobs end, and may have a job that runs when all have. */
  async createBatch(inputs: unknown, options: BatchOptions, by: Creator = {}): Promise<CreatedBatch> {
    const { clock, random, shards } = this.#deps
    const now = clock.now()
    const { name, onFinish } = understandBatch(options, inputs, { ...by, now })
    const id = newJobId(Math.floor(random.float() * shards), now, random)
    const { prepared, links } = await this.#prepareAll(inputs, 'runs', by)
    if (tenantsOf(prepared).size > 1) throw invalidJobs('of a batch are all of one tenant')
    if (onFinish !== null) {
      onFinish.definition.after = { jobs: [], batch: id, on: 'finish' }
      prepared.push(...(await this.#preparer.all([onFinish], 'runs')))
    }
    const batch = { id, name, createdBy: by.createdBy ?? null }
    const created = await withPosition(prepared, this.#put(prepared, { graph: links?.graph ?? null, batch }, 'refuse'))
    return { batchId: batch.id, jobs: onFinish === null ? created : created.slice(0, -1) }
  }

  /**
   * In a caller's transaction, which may commit much later: nothing is born ready, the owner gives it its turn. What is to be done
   * belongs to what the caller writes, so it is refused for want of room only if he wants that.
   */
  async createIn(tx: Queryable, inputs: unknown, whenFull: WhenFull = 'accept'): Promise<Created[]> {
    const { prepared, links } = await this.#prepareAll(inputs, 'timers')
    await this.#intern(prepared)
    if (whenFull === 'refuse') await this.#deps.room.measure(prepared)
    const terms = { ...this.#terms('again'), links, admit: this.#admits(whenFull) }
    const put = await withPosition(prepared, putKeyed(tx, prepared, terms))
    await this.#deps.wakeups.inTransaction(
      tx,
      this.#deps.db.schema,
      prepared.map(({ job }, i) => {
        const { jobId, replacement } = put[i]?.answer ?? {}
        return jobId && replacement ? [shardOfJob(jobId), replacement.dueAt] : [job.shard, job.dueAt]
      }),
    )
    return put.map(({ created }) => created)
  }

  async #prepareAll(
    inputs: unknown,
    born: 'runs' | 'timers',
    by: Creator = {},
  ): Promise<{ prepared: Prepared[]; links: CallLinks | null }> {
    if (!Array.isArray(inputs)) throw invalidJobs('must be an array of jobs')
    if (inputs.length > MAX_JOBS_PER_CALL)
      throw invalidJobs(`at most ${MAX_JOBS_PER_CALL} fit into one call, not ${inputs.length}`)
    mustBoundEdges(inputs)
    const { clock } = this.#deps
    const context = { ...by, now: clock.now(), inCall: true }
    const breather = new Breather(clock)
    const understood: UnderstoodJob[] = []
    for (let i = 0; i < inputs.length; i++) {
      await breather.breathe()
      try {
        understood.push(await this.#understood(inputs[i], context))
      } catch (error) {
        throw inPosition(error, i)
      }
    }
    const links = await withPosition(
      [],
      Promise.resolve().then(() => linksOf(understood)),
    )
    // Only now: preparing makes the queues that are new, and a call that is refused leaves nothing behind.
    return { prepared: await this.#preparer.all(understood, born), links }
  }

  /** For a job that has its id already, because SQL created it. */
  async prepareFor(jobId: string, input: unknown): Promise<Prepared> {
    return this.#preparer.withId(jobId, await this.#understood(input, { now: this.#deps.clock.now() }))
  }

  async putIn(tx: Transaction, prepared: Prepared, now: Instant): Promise<void> {
    await this.#intern([prepared])
    // Its id has been given out, so it cannot become another job.
    const replace = async () => ({ refused: 'a job that SQL created replaces no other' })
    const [put] = await putKeyed(tx, [prepared], { ...this.#terms('again'), now, replace })
    if (put?.answer === null || put === undefined) return
    const code = prepared.understood.definition.unique === undefined ? 'name_taken' : 'unique_conflict'
    throw new BelfryError(code, `job ${put.answer.jobId} was made under the same key`)
  }

  /** One call, one outcome: a single statement where that is enough, else one transaction. */
  async #put(
    prepared: Prepared[],
    links: CallLinks | null,
    whenFull: WhenFull,
    first: Sending = 'first',
  ): Promise<Created[]> {
    const { db, clock, wakeups, room } = this.#deps
    let isTold = false
    if (whenFull === 'refuse' && !room.isIdle) await room.measure(prepared)
    const put = await this.#patiently(first, async (sending) => {
      // What may be there already is not refused any more.
      const admit = this.#admits(sending === 'first' ? whenFull : 'accept')
      await this.#intern(prepared)
      const isPlain =
        links === null &&
        prepared.length <= MAX_BATCH &&
        !prepared.some(isTied) &&
        prepared.every(({ job }) => job.limitKey === null) &&
        kindsOf(prepared).size <= 1 &&
        tenantsOf(prepared).size <= 1
      if (!isPlain) {
        // Thousands of jobs leave the connections of those who change one to these.
        const share = prepared.length > MAX_BATCH ? db.bulk : db.callers
        return share.transactionOn(rowsOf(prepared), (tx) =>
          putKeyed(tx, prepared, {
            ...this.#terms(sending),
            isResent: sending === 'again',
            admit,
            links,
            onTold: () => {
              isTold = true
            },
          }),
        )
      }
      admit(prepared)
      await putAll(db, prepared, clock.now(), sending)
      return prepared.map((item): Put => ({ created: createdOf(item), answer: null }))
    })
    this.announce(prepared.filter((_, i) => put[i]?.answer === null))
    if (isTold) wakeups.told()
    for (const { answer } of put) if (answer?.replacement) this.#announceReplaced(answer.jobId, answer.replacement)
    return put.map(({ created }, i) => withRef(created, prepared[i]))
  }

  #admits(whenFull: WhenFull): PutTerms['admit'] {
    return whenFull === 'accept' ? () => {} : (fresh) => this.#deps.room.admit(fresh)
  }

  #terms(sending: Sending): PutTerms {
    const { clock, historyDays } = this.#deps
    const now = clock.now()
    return {
      now,
      forgottenBefore: forgottenBefore(now, historyDays),
      sending,
      isResent: false,
      admit: () => {},
      links: null,
      onTold: () => {},
      replace: (tx, jobId, item, now) => replaceJob(tx, this.#deps, jobId, item, now),
    }
  }

  /** As its queue would have it where the job says nothing itself. */
  #understood(input: unknown, context: UnderstandContext): UnderstoodJob | Promise<UnderstoodJob> {
    const understood = understandJob(input, context)
    return this.#deps.queueSettings.isEmpty ? understood : withDefaults(this.#deps, input, understood, context)
  }

  #announceReplaced(jobId: string, { dueAt, ready, asked }: Replacement): void {
    const { wakeups } = this.#deps
    for (const run of ready) wakeups.ready(run)
    for (const nominalAt of asked) wakeups.cancel(jobId, nominalAt)
    wakeups.timer(shardOfJob(jobId), dueAt)
  }

  async #putSingles(batch: Pending[]): Promise<void> {
    for (const group of grouped(batch, ({ prepared }) => prepared.job.kind).values()) await this.#putGroup(group)
  }

  /** Sent again while the database is away; those whose callers have waited long enough are told and left out. */
  async #putGroup(group: Pending[]): Promise<void> {
    const { db, clock } = this.#deps
    let sending: Sending = 'first'
    for (let left = group; left.length > 0; ) {
      const prepared = left.map((pending) => pending.prepared)
      try {
        await this.#intern(prepared)
        const gone = await putSingly(db, prepared, clock.now(), sending)
        if (gone.size > 0) {
          for (const { prepared, reject } of left)
            if (gone.has(prepared.job.tenantId)) reject(noTenant(prepared.understood.tenant))
          left = left.filter(({ prepared }) => !gone.has(prepared.job.tenantId))
        }
        this.announce(left.map((pending) => pending.prepared))
        for (const { prepared, resolve } of left) resolve(createdOf(prepared))
        return
      } catch (error) {
        if (isOutage(error)) {
          sending = 'again'
          const nextTryAt = clock.now() + RETRY_PAUSE_MS
          for (const { until, reject } of left) if (until <= nextTryAt) reject(unavailable(error))
          left = left.filter(({ until }) => until > nextTryAt)
          if (left.length > 0) await pause(RETRY_PAUSE_MS)
          continue
        }
        if (left.length === 1 || (error instanceof BelfryError && error.code !== 'in_progress'))
          for (const { reject } of left) reject(error)
        // Beside each other: one that waits for another transaction delays none of the rest.
        else
          await Promise.all(
            left.map(({ prepared, resolve, reject }) =>
              this.#put([prepared], null, 'accept', 'again').then(([created]) => resolve(created as Created), reject),
            ),
          )
        return
      }
    }
  }

  /** Sends the same ids again while the database is away; whether the first try committed does not matter. */
  async #patiently<Result>(first: Sending, put: (sending: Sending) => Promise<Result>): Promise<Result> {
    const { clock } = this.#deps
    const until = clock.now() + PATIENCE_MS
    let wasLost = false
    for (;;) {
      try {
        return await put(wasLost ? 'again' : first)
      } catch (error) {
        const isLost = isOutage(error)
        // Our own lost transaction may hold the key, until the database finds out that nobody is there.
        const meetsItself = wasLost && error instanceof BelfryError && error.code === 'in_progress'
        if (!isLost && !meetsItself) throw error
        if (clock.now() + RETRY_PAUSE_MS >= until) throw isLost ? unavailable(error) : error
        wasLost = true
        await pause(RETRY_PAUSE_MS)
      }
    }
  }

  async #intern(prepared: readonly Prepared[]): Promise<void> {
    await this.#deps.schedules.intern(
      prepared.flatMap(({ job, schedule }) => (schedule === null ? [] : [{ shard: job.shard, spec: schedule }])),
    )
  }

  announce(prepared: readonly Prepared[]): void {
    const { wakeups } = this.#deps
    for (const { job } of prepared) {
      if (job.kind !== 'immediate') wakeups.timer(job.shard, job.dueAt)
      else if (job.state === RUN_STATE.ready) wakeups.ready({ ...job, turn: job.turn as number })
    }
  }
}

const invalidJobs = (message: string): BelfryError => refusal('invalid_argument', 'jobs', message)

const unavailable = (cause: unknown): BelfryError =>
  new BelfryError('database_unavailable', 'the database cannot be reached; whether the job was created is unknown', {
    cause,
  })

const tenantsOf = (prepared: readonly Prepared[]): Set<number> => new Set(prepared.map(({ job }) => job.tenantId))

const kindsOf = (prepared: readonly Prepared[]): Set<string> => new Set(prepared.map(({ job }) => job.kind))

/** Something else is written with it, before it: its keys, or that it needs a payload. */
const isTied = (prepared: Prepared): boolean =>
  prepared.keys.length > 0 || namesPayload(prepared) || prepared.understood.definition.after !== undefined

function linksOf(understood: readonly UnderstoodJob[]): CallLinks | null {
  const graph = jobGraph(understood)
  return graph && { graph, batch: null }
}

function withRef(created: Created, prepared: Prepared | undefined): Created {
  const ref = prepared?.understood.ref ?? null
  return ref === null ? created : { ...created, ref }
}

/** Says which job of a call it was that named no payload, met another job, or cannot wait for what it names. */
function withPosition<Result>(prepared: readonly Prepared[], put: Promise<Result>): Promise<Result> {
  return put.catch((thrown: unknown) => {
    const error = thrown instanceof UniqueConflict ? thrown.inCall(prepared) : thrown
    if (error instanceof Misplaced) throw inPosition(error, error.position)
    const item = error instanceof PayloadMissing || error instanceof UniqueConflict ? error.item : null
    throw item === null ? error : inPosition(error, prepared.indexOf(item))
  })
}
