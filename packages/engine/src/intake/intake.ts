import { BelfryError } from '../errors.ts'
import { queueKindOf } from '../job/definition.ts'
import { newJobId, shardOfJob, shardOfKey } from '../job/ids.ts'
import { DELIVERY, OVERLAP } from '../job/states.ts'
import { dueOf } from '../promotion/due.ts'
import type { Schedules } from '../promotion/schedules.sql.ts'
import type { Turns } from '../ready/turn.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { Lanes } from '../runtime/lanes.ts'
import { pause } from '../runtime/pause.ts'
import type { Random } from '../runtime/random.ts'
import { noTenant, type Registry } from '../shards/registry.sql.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import { type Database, isConnectionLost, type Queryable, type Transaction } from '../store/database.ts'
import { namesPayload, PayloadMissing } from './announce-payloads.ts'
import { jitterOf } from './jitter.ts'
import { KEY_KIND, type Key } from './keys.sql.ts'
import type { NewOneOff, NewRecurring, Sending } from './put-jobs.sql.ts'
import { putKeyed } from './put-keyed.ts'
import { type Created, createdOf, MAX_BATCH, type Prepared, putAll, putPrepared } from './put-prepared.ts'
import { type UnderstandContext, type UnderstoodJob, understandJob } from './understand-job.ts'

export interface IntakeDeps {
  db: Database
  clock: Clock
  random: Random
  registry: Registry
  schedules: Schedules
  turns: Turns
  wakeups: Wakeups
  shards: number
}

/** Whose jobs they are and who says so; without a tenant each job names its own, or is of the tenant `default`. */
export type Creator = Pick<UnderstandContext, 'tenant' | 'createdBy'>

interface Pending {
  prepared: Prepared
  /** Its caller waits until then, however long it has to wait for a lane. */
  until: Instant
  resolve(created: Created): void
  reject(error: unknown): void
}

/** Where a job will be, and since when. */
interface Place {
  tenantId: number
  queueId: number
  shard: number
  jobId: string
  now: Instant
}

const NO_KEYS: readonly Key[] = []
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
  readonly #singles: Lanes<Pending>

  constructor(deps: IntakeDeps) {
    this.#deps = deps
    this.#singles = new Lanes({ lanes: LANES, maxBatch: MAX_BATCH, work: (batch) => this.#putSingles(batch) })
  }

  async create(input: unknown, by: Creator = {}): Promise<Created> {
    const understood = understandJob(input, { ...by, now: this.#deps.clock.now() })
    const prepared = this.#prepareKnown(understood, 'runs') ?? (await this.#prepare(understood, 'runs'))
    if (isTied(prepared)) return (await this.#put([prepared]))[0] as Created
    const until = this.#deps.clock.now() + PATIENCE_MS
    return new Promise((resolve, reject) => this.#singles.push({ prepared, until, resolve, reject }))
  }

  /** All or nothing. */
  async createMany(inputs: unknown, by: Creator = {}): Promise<Created[]> {
    const prepared = await this.#prepareAll(inputs, 'runs', by)
    return withPosition(prepared, this.#put(prepared))
  }

  /** In a caller's transaction, which may commit much later: nothing is born ready, the owner gives it its turn. */
  async createIn(tx: Queryable, inputs: unknown): Promise<Created[]> {
    const prepared = await this.#prepareAll(inputs, 'timers')
    await this.#intern(prepared)
    const now = this.#deps.clock.now()
    const created = await withPosition(prepared, putKeyed(tx, prepared, now))
    await this.#deps.wakeups.inTransaction(
      tx,
      this.#deps.db.schema,
      prepared.map(({ job }) => [job.shard, job.dueAt]),
    )
    return created
  }

  async #prepareAll(inputs: unknown, born: 'runs' | 'timers', by: Creator = {}): Promise<Prepared[]> {
    if (!Array.isArray(inputs)) throw invalidJobs('must be an array of jobs')
    if (inputs.length > MAX_JOBS_PER_CALL)
      throw invalidJobs(`at most ${MAX_JOBS_PER_CALL} fit into one call, not ${inputs.length}`)
    const context = { ...by, now: this.#deps.clock.now() }
    const understood: UnderstoodJob[] = []
    for (let i = 0; i < inputs.length; i++) {
      try {
        understood.push(understandJob(inputs[i], context))
      } catch (error) {
        throw error instanceof BelfryError ? inPosition(error, i) : error
      }
    }
    // Only now: preparing makes the queues that are new, and a call that is refused leaves nothing behind.
    const prepared: Prepared[] = []
    for (const one of understood) prepared.push(this.#prepareKnown(one, born) ?? (await this.#prepare(one, born)))
    return prepared
  }

  async #prepare(understood: UnderstoodJob, born: 'runs' | 'timers'): Promise<Prepared> {
    const known = this.#prepareKnown(understood, born)
    if (known) return known
    const tenantId = await this.#deps.registry.tenantId(understood.tenant)
    await this.#deps.registry.queueId(tenantId, understood.queue, queueKindOf(understood.definition))
    return this.#prepareKnown(understood, born) as Prepared
  }

  /** For a job that has its id already, because SQL created it. */
  async prepareFor(jobId: string, input: unknown): Promise<Prepared> {
    const { clock, registry } = this.#deps
    const now = clock.now()
    const understood = understandJob(input, { now })
    const tenantId = await registry.tenantId(understood.tenant)
    const queueId = await registry.queueId(tenantId, understood.queue, queueKindOf(understood.definition))
    const place = { tenantId, queueId, shard: shardOfJob(jobId), jobId, now }
    return {
      understood,
      job: this.#placeOf(understood, place, 'runs'),
      keys: this.#keysOf(understood, place),
    }
  }

  async putIn(tx: Transaction, prepared: Prepared, now: Instant): Promise<void> {
    await this.#intern([prepared])
    const [created] = await putKeyed(tx, [prepared], now)
    if (created?.deduplicated) throw new BelfryError('name_taken', `the same request made job ${created.jobId} already`)
  }

  /** Gives the job its shard and id; null while its tenant or queue is not known yet. */
  #prepareKnown(understood: UnderstoodJob, born: 'runs' | 'timers'): Prepared | null {
    const { tenant, queue } = understood
    const known = this.#deps.registry.knownQueue(tenant, queue, queueKindOf(understood.definition))
    if (!known) return null
    const { shards, random, clock } = this.#deps
    const { tenantId, queueId } = known
    const now = clock.now()
    const key = understood.idempotency?.key
    const shard = key === undefined ? Math.floor(random.float() * shards) : shardOfKey(tenantId, key, shards)
    const place = { tenantId, queueId, shard, jobId: newJobId(shard, now, random), now }
    return { understood, job: this.#placeOf(understood, place, born), keys: this.#keysOf(understood, place) }
  }

  /** Written out, for every job comes by here: spreading objects into objects took longer than all the rest of it. */
  #placeOf(understood: UnderstoodJob, place: Place, born: 'runs' | 'timers'): NewOneOff | NewRecurring {
    const { when, priority } = understood
    const { now } = place
    if (when.kind === 'recurring') {
      const { id, schedule } = this.#deps.schedules.of(when.schedule)
      const nominalAt = schedule.next(now - 1)
      if (nominalAt === null)
        throw new BelfryError('invalid_job', 'the schedule never fires', {
          complaints: [{ path: 'endAt', message: 'the schedule has no time between now and its end' }],
        })
      const jitterMs = jitterOf(place.jobId, when.jitterMs)
      return {
        kind: 'recurring',
        shard: place.shard,
        jobId: place.jobId,
        tenantId: place.tenantId,
        queueId: place.queueId,
        timeoutMs: understood.timeoutMs,
        priority,
        delivery: deliveryOf(understood),
        name: understood.name,
        definitionJson: understood.definitionJson,
        dueAt: Math.max(now, dueOf(nominalAt, jitterMs, schedule)),
        nominalAt,
        scheduleId: id,
        overlap: OVERLAP[when.overlap],
        jitterMs,
        maxRuns: when.maxRuns,
      }
    }
    const dueAt = when.kind === 'now' ? now : when.at
    const isReady = born === 'runs' && dueAt <= now
    return {
      kind: isReady ? 'immediate' : 'delayed',
      shard: place.shard,
      jobId: place.jobId,
      tenantId: place.tenantId,
      queueId: place.queueId,
      timeoutMs: understood.timeoutMs,
      priority,
      delivery: deliveryOf(understood),
      name: understood.name,
      definitionJson: understood.definitionJson,
      dueAt,
      turn: isReady ? this.#deps.turns.next(now, priority) : null,
    }
  }

  #keysOf({ idempotency, name }: UnderstoodJob, { tenantId, jobId, now }: Place): readonly Key[] {
    if (idempotency === null && name === null) return NO_KEYS
    const { shards } = this.#deps
    const keys: Key[] = []
    if (idempotency) {
      const { key, ttlMs, fingerprint } = idempotency
      keys.push({
        shard: shardOfKey(tenantId, key, shards),
        tenantId,
        kind: KEY_KIND.idempotency,
        key,
        jobId,
        fingerprint,
        expiresAt: now + ttlMs,
      })
    }
    if (name !== null) {
      keys.push({
        shard: shardOfKey(tenantId, name, shards),
        tenantId,
        kind: KEY_KIND.name,
        key: name,
        jobId,
        fingerprint: null,
        expiresAt: Number.POSITIVE_INFINITY,
      })
    }
    return keys
  }

  /** One call, one outcome: a single statement where that is enough, else one transaction. */
  async #put(prepared: Prepared[], sending: Sending = 'first'): Promise<Created[]> {
    const { db, clock } = this.#deps
    const created = await this.#patiently(sending, async (sending) => {
      await this.#intern(prepared)
      const now = clock.now()
      const isPlain =
        prepared.length <= MAX_BATCH &&
        !prepared.some(isTied) &&
        kindsOf(prepared).size <= 1 &&
        tenantsOf(prepared).size <= 1
      if (!isPlain) {
        return db.transaction((tx) => putKeyed(tx, prepared, now, sending))
      }
      await putAll(db, prepared, now, sending)
      return prepared.map(createdOf)
    })
    this.announce(prepared.filter((_, i) => created[i]?.deduplicated === false))
    return created
  }

  async #putSingles(batch: Pending[]): Promise<void> {
    const [first] = batch
    if (batch.every(({ prepared }) => prepared.job.kind === first?.prepared.job.kind)) return this.#putGroup(batch)
    const groups = new Map<string, Pending[]>()
    for (const pending of batch) {
      const list = groups.get(pending.prepared.job.kind)
      if (list) list.push(pending)
      else groups.set(pending.prepared.job.kind, [pending])
    }
    for (const group of groups.values()) await this.#putGroup(group)
  }

  /** Sent again while the database is away; those whose callers have waited long enough are told and left out. */
  async #putGroup(group: Pending[]): Promise<void> {
    const { db, clock } = this.#deps
    let sending: Sending = 'first'
    for (let left = group; left.length > 0; ) {
      const prepared = left.map((pending) => pending.prepared)
      try {
        await this.#intern(prepared)
        const gone = await putPrepared(db, prepared, clock.now(), sending)
        if (gone.size > 0) {
          for (const { prepared, reject } of left)
            if (gone.has(prepared.job.tenantId)) reject(noTenant(prepared.understood.tenant))
          left = left.filter(({ prepared }) => !gone.has(prepared.job.tenantId))
        }
        this.announce(left.map((pending) => pending.prepared))
        for (const { prepared, resolve } of left) resolve(createdOf(prepared))
        return
      } catch (error) {
        if (isConnectionLost(error)) {
          sending = 'again'
          const nextTryAt = clock.now() + RETRY_PAUSE_MS
          for (const { until, reject } of left) if (until <= nextTryAt) reject(unavailable(error))
          left = left.filter(({ until }) => until > nextTryAt)
          if (left.length > 0) await pause(RETRY_PAUSE_MS)
          continue
        }
        if (left.length === 1 || error instanceof BelfryError) for (const { reject } of left) reject(error)
        else
          for (const pending of left)
            await this.#put([pending.prepared], 'again').then(
              ([created]) => pending.resolve(created as Created),
              pending.reject,
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
        const isLost = isConnectionLost(error)
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
      prepared.flatMap(({ job, understood }) =>
        understood.when.kind === 'recurring' ? [{ shard: job.shard, spec: understood.when.schedule }] : [],
      ),
    )
  }

  announce(prepared: readonly Prepared[]): void {
    const { wakeups } = this.#deps
    for (const { job } of prepared) {
      if (job.kind === 'immediate') wakeups.ready({ ...job, turn: job.turn as number })
      else wakeups.timer(job.shard, job.dueAt)
    }
  }
}

const invalidJobs = (message: string): BelfryError =>
  new BelfryError('invalid_argument', `jobs: ${message}`, { complaints: [{ path: 'jobs', message }] })

const unavailable = (cause: unknown): BelfryError =>
  new BelfryError('database_unavailable', 'the database cannot be reached; whether the job was created is unknown', {
    cause,
  })

const deliveryOf = ({ definition }: UnderstoodJob): number => DELIVERY[definition.delivery ?? 'at_least_once']

const tenantsOf = (prepared: readonly Prepared[]): Set<number> => new Set(prepared.map(({ job }) => job.tenantId))

const kindsOf = (prepared: readonly Prepared[]): Set<string> => new Set(prepared.map(({ job }) => job.kind))

/** Something else is written with it, before it: its keys, or that it needs a payload. */
const isTied = (prepared: Prepared): boolean => prepared.keys.length > 0 || namesPayload(prepared)

/** Says which job of a call it was that named no payload. */
function withPosition<Result>(prepared: readonly Prepared[], put: Promise<Result>): Promise<Result> {
  return put.catch((error: unknown) => {
    throw error instanceof PayloadMissing && error.item ? inPosition(error, prepared.indexOf(error.item)) : error
  })
}

const inPosition = (error: BelfryError, position: number): BelfryError =>
  new BelfryError(error.code, `job ${position}: ${error.message}`, {
    complaints: error.complaints.map((complaint) => ({
      ...complaint,
      path: complaint.path === '' ? `[${position}]` : `[${position}].${complaint.path}`,
    })),
    cause: error,
  })
