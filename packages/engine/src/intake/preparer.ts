import { BelfryError } from '../errors.ts'
import { queueKindOf, type ResolvedSpec } from '../job/definition.ts'
import { deliveryOf, fairnessKeyOf, limitKeyOf, limitNameOf } from '../job/flow-keys.ts'
import { newJobId, shardOfJob, shardOfKey } from '../job/ids.ts'
import { OVERLAP, RUN_STATE } from '../job/states.ts'
import { dueOf } from '../promotion/due.ts'
import type { Schedules } from '../promotion/schedules.sql.ts'
import type { Turns } from '../ready/turn.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import type { Registry } from '../shards/registry.sql.ts'
import { KEEP_UNIQUE_MS } from './claim-unique.ts'
import { jitterOf } from './jitter.ts'
import { KEY_KIND, type Key } from './keys.sql.ts'
import { neverFires } from './never-fires.ts'
import type { NewOneOff, NewRecurring } from './put-jobs.sql.ts'
import type { Prepared } from './put-prepared.ts'
import {
  type CalendarMap,
  type CalendarReader,
  calendarsOf,
  mustResolve,
  NO_CALENDARS,
  resolveFor,
} from './resolve-when.ts'
import type { UnderstoodJob } from './understand-job.ts'
import type { When } from './understand-when.ts'

export interface PreparerDeps {
  clock: Clock
  random: Random
  registry: Registry
  schedules: Schedules
  calendars: CalendarReader
  turns: Turns
  shards: number
}

type Born = 'runs' | 'timers'

/** Where a job will be, and since when. */
interface Place {
  tenantId: number
  queueId: number
  shard: number
  jobId: string
  now: Instant
}

const NO_KEYS: readonly Key[] = []
const NO_TENANTS: ReadonlyMap<string, CalendarMap> = new Map()

/**
 * Gives understood jobs their id, their place and their first time. That asks nobody, except for the number of a queue that
 * this process has not met, and for calendars, which are read for every job that names one: they may have changed.
 */
export class Preparer {
  readonly #deps: PreparerDeps

  constructor(deps: PreparerDeps) {
    this.#deps = deps
  }

  /** Without asking the database, as most jobs are; null if that is not enough. */
  alone(understood: UnderstoodJob): Prepared | null {
    return calendarsOf(understood.when).length > 0 ? null : this.#known(understood, 'runs', NO_CALENDARS)
  }

  async one(understood: UnderstoodJob): Promise<Prepared> {
    const { registry, calendars } = this.#deps
    const names = calendarsOf(understood.when)
    const days =
      names.length === 0 ? NO_CALENDARS : await calendars.read(await registry.tenantId(understood.tenant), names)
    mustResolve(understood.when, days)
    return this.#asked(understood, 'runs', days)
  }

  /** Of one call; an error says which of them it was. */
  async all(understood: readonly UnderstoodJob[], born: Born): Promise<Prepared[]> {
    const calendars = await this.#calendarsFor(understood)
    const prepared: Prepared[] = []
    for (let i = 0; i < understood.length; i++) {
      const one = understood[i] as UnderstoodJob
      const days = calendars.get(one.tenant) ?? NO_CALENDARS
      try {
        prepared.push(this.#known(one, born, days) ?? (await this.#asked(one, born, days)))
      } catch (error) {
        throw inPosition(error, i)
      }
    }
    return prepared
  }

  /** For a job that has its id already. */
  async withId(jobId: string, understood: UnderstoodJob): Promise<Prepared> {
    const { clock, registry, calendars } = this.#deps
    const now = clock.now()
    const tenantId = await registry.tenantId(understood.tenant)
    const days = await calendars.read(tenantId, calendarsOf(understood.when))
    const queueId = await registry.queueId(tenantId, understood.queue, queueKindOf(understood.definition))
    return this.#placed(understood, { tenantId, queueId, shard: shardOfJob(jobId), jobId, now }, 'runs', days)
  }

  /** The calendars that jobs of a call name, by tenant; throws if one is not there, or leaves its job no time. */
  async #calendarsFor(understood: readonly UnderstoodJob[]): Promise<ReadonlyMap<string, CalendarMap>> {
    const names = new Map<string, Set<string>>()
    for (const { tenant, when } of understood) {
      for (const name of calendarsOf(when)) names.set(tenant, (names.get(tenant) ?? new Set()).add(name))
    }
    if (names.size === 0) return NO_TENANTS
    const { registry, calendars } = this.#deps
    const found = new Map<string, CalendarMap>()
    for (const [tenant, wanted] of names) {
      found.set(tenant, await calendars.read(await registry.tenantId(tenant), [...wanted]))
    }
    understood.forEach(({ tenant, when }, i) => {
      try {
        mustResolve(when, found.get(tenant) ?? NO_CALENDARS)
      } catch (error) {
        throw inPosition(error, i)
      }
    })
    return found
  }

  async #asked(understood: UnderstoodJob, born: Born, calendars: CalendarMap): Promise<Prepared> {
    const { registry } = this.#deps
    const tenantId = await registry.tenantId(understood.tenant)
    await registry.queueId(tenantId, understood.queue, queueKindOf(understood.definition))
    return this.#known(understood, born, calendars) as Prepared
  }

  /** Null while its tenant or queue is not known yet. */
  #known(understood: UnderstoodJob, born: Born, calendars: CalendarMap): Prepared | null {
    const { tenant, queue } = understood
    const known = this.#deps.registry.knownQueue(tenant, queue, queueKindOf(understood.definition))
    if (!known) return null
    const { shards, random, clock } = this.#deps
    const { tenantId, queueId } = known
    const now = clock.now()
    // What shares an exact limit shares a shard.
    const key = limitNameOf(understood.definition) ?? understood.idempotency?.key
    const shard = key === undefined ? Math.floor(random.float() * shards) : shardOfKey(tenantId, key, shards)
    const jobId = newJobId(shard, now, random)
    return this.#placed(understood, { tenantId, queueId, shard, jobId, now }, born, calendars)
  }

  #placed(understood: UnderstoodJob, place: Place, born: Born, calendars: CalendarMap): Prepared {
    const { when } = understood
    const keys = this.#keysOf(understood, place)
    if (when.kind !== 'recurring') {
      return { understood, schedule: null, job: this.#oneOffOf(understood, when, place, born), keys }
    }
    const schedule = resolveFor(when.schedule, { jobId: place.jobId, calendars, from: when.askedAt })
    return { understood, schedule, job: this.#recurringOf(understood, when, place, schedule), keys }
  }

  #recurringOf(
    understood: UnderstoodJob,
    when: When & { kind: 'recurring' },
    place: Place,
    spec: ResolvedSpec,
  ): NewRecurring {
    const { now } = place
    const { id, schedule } = this.#deps.schedules.of(spec)
    const nominalAt = schedule.next(when.askedAt - 1)
    if (nominalAt === null) throw neverFires(spec, when.askedAt)
    const jitterMs = jitterOf(place.jobId, when.jitterMs)
    return {
      kind: 'recurring',
      shard: place.shard,
      jobId: place.jobId,
      tenantId: place.tenantId,
      queueId: place.queueId,
      timeoutMs: understood.timeoutMs,
      priority: understood.priority,
      delivery: deliveryOf(understood.definition),
      name: understood.name,
      definitionJson: understood.definitionJson,
      limitKey: limitKeyOf(understood.definition, place.tenantId, place.jobId),
      fairnessKey: fairnessKeyOf(understood.definition),
      dueAt: Math.max(now, dueOf(nominalAt, jitterMs, schedule)),
      nominalAt,
      scheduleId: id,
      overlap: OVERLAP[when.overlap],
      jitterMs,
      maxRuns: when.maxRuns,
      hasDependents: false,
    }
  }

  /** Written out, for every job comes by here: spreading objects into objects took longer than all the rest of it. */
  #oneOffOf(
    understood: UnderstoodJob,
    when: Exclude<When, { kind: 'recurring' }>,
    place: Place,
    born: Born,
  ): NewOneOff {
    const { priority } = understood
    const { now, tenantId, queueId } = place
    const fairnessKey = fairnessKeyOf(understood.definition)
    const dueAt = when.kind === 'now' ? now : when.at
    // Who waits for others gets its turn when those have ended.
    const isReady = born === 'runs' && dueAt <= now && understood.definition.after === undefined
    return {
      kind: isReady ? 'immediate' : 'delayed',
      shard: place.shard,
      jobId: place.jobId,
      tenantId,
      queueId,
      timeoutMs: understood.timeoutMs,
      priority,
      delivery: deliveryOf(understood.definition),
      name: understood.name,
      definitionJson: understood.definitionJson,
      limitKey: limitKeyOf(understood.definition, place.tenantId, place.jobId),
      fairnessKey,
      dueAt,
      turn: isReady ? this.#deps.turns.next(now, { queueId, tenantId, fairnessKey, priority }) : null,
      hasDependents: false,
      state: RUN_STATE.ready,
    }
  }

  #keysOf(
    { idempotency, name, definition: { unique } }: UnderstoodJob,
    { tenantId, jobId, now }: Place,
  ): readonly Key[] {
    if (idempotency === null && name === null && unique === undefined) return NO_KEYS
    const { shards } = this.#deps
    const keys: Key[] = []
    const add = (kind: number, key: string, expiresAt: Instant, fingerprint: string | null = null) =>
      keys.push({ shard: shardOfKey(tenantId, key, shards), tenantId, kind, key, jobId, fingerprint, expiresAt })
    if (idempotency) add(KEY_KIND.idempotency, idempotency.key, now + idempotency.ttlMs, idempotency.fingerprint)
    if (name !== null) add(KEY_KIND.name, name, Number.POSITIVE_INFINITY)
    if (unique !== undefined) add(KEY_KIND.unique, unique.key, now + KEEP_UNIQUE_MS)
    return keys
  }
}

/** Says which job of a call it was. */
export function inPosition(error: unknown, position: number): unknown {
  if (!(error instanceof BelfryError)) return error
  return new BelfryError(error.code, `job ${position}: ${error.message}`, {
    complaints: error.complaints.map((complaint) => ({
      ...complaint,
      path: complaint.path === '' ? `[${position}]` : `[${position}].${complaint.path}`,
    })),
    cause: error,
  })
}
