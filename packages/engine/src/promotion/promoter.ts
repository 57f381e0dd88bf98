import { OVERTIME_MS } from '../job/overtime.ts'
import { isKeyed, isOnce, OVERLAP } from '../job/states.ts'
import type { Definitions } from '../leases/definitions.sql.ts'
import { newHolder } from '../leases/holder.ts'
import type { Lease } from '../leases/lease.ts'
import { recoverLeases } from '../leases/recover.sql.ts'
import type { Turns } from '../ready/turn.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Random } from '../runtime/random.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Vital } from '../store/database.ts'
import { UnknownOutcome } from '../store/database-errors.ts'
import { type Timer, timerKey } from '../timers/timer.ts'
import type { TimerReader } from '../timers/timer-reader.ts'
import { FRESH_MS } from './decide.ts'
import type { DirectLeases } from './direct-leases.ts'
import { dueOf } from './due.ts'
import type { LeaseTerms } from './lease-terms.ts'
import type { PromoteAlone } from './promote-alone.ts'
import { promoteOneOffs } from './promote-one-offs.sql.ts'
import { type Promoted, promoteRecurring, type RecurringPromotion } from './promote-recurring.sql.ts'
import type { Schedules } from './schedules.sql.ts'

export interface PromoterDeps {
  db: Vital
  clock: Clock
  random: Random
  logger: Logger
  reader: TimerReader
  schedules: Schedules
  definitions: Definitions
  turns: Turns
  wakeups: Wakeups
  direct: DirectLeases
  alone: PromoteAlone
  /** Some timers are to be decided alone. */
  onAlone(): void
  leaseMs: number
  stopping: AbortSignal
}

const BATCH = 1_000
const LONGEST_WAIT_MS = 1_000
/** Room in an executor is told; this is for when it is not. */
const HOLD_MS = 10
/** Timers that wait to be decided alone; what does not fit is found by the sweep. */
const MAX_ALONE = 10_000
/** Decided alone in one step, so many at once. */
const ALONE_BATCH = 50
const ALONE_LANES = 2
/** Jobs whose compare-and-set failed lately; more than this means that something else is wrong, and it is forgotten. */
const MAX_CONFLICTS = 10_000

/** A due timer with everything that its promotion says about it. */
interface Planned extends RecurringPromotion {
  timer: Timer
  /** As this node has read it lately. */
  definition: string | null
}

/**
 * Carries due timers on: each becomes a run, and the timer its next time, in one statement per batch. What does not fit the
 * plain case (several times that have come, a last run, a job that nobody has planned, a live run that it meets, a
 * compare-and-set that failed twice) is decided alone, in a transaction that holds the timer.
 */
export class Promoter implements Step {
  readonly #deps: PromoterDeps
  readonly #conflicts = new Set<string>()
  readonly #alone = new Map<string, Timer>()
  #holds = false

  constructor(deps: PromoterDeps) {
    this.#deps = deps
  }

  /** Promotes one batch, and decides what of it takes more thought. */
  async runOnce(): Promise<{ waitMs: number; promoted: number }> {
    const done = await this.runBatch()
    while (this.#alone.size > 0) await this.runAlone()
    return done
  }

  /** Promotes one batch. Several may run at once: each takes other timers. */
  async runBatch(): Promise<{ waitMs: number; promoted: number }> {
    const { reader, clock, direct } = this.#deps
    if (!clock.isTrusted) return { waitMs: HOLD_MS, promoted: 0 }
    const leased = new Set<Timer>()
    this.#holds = false
    const due = reader.takeDue(BATCH, (timer) => {
      const admission = timer.nominalAt === null || isKeyed(timer.delivery) ? 'ready' : direct.admit(timer)
      if (admission === 'leased') leased.add(timer)
      if (admission === 'hold') this.#holds = true
      return admission !== 'hold'
    })
    if (due.length === 0) {
      const wait = this.#holds ? HOLD_MS : Math.max(1, reader.nextDueAt() - clock.now())
      return { waitMs: Math.min(LONGEST_WAIT_MS, wait), promoted: 0 }
    }
    try {
      await this.#promote(due, leased)
    } catch (error) {
      // Nothing is lost: the timers are still in the table, and are read again.
      for (const timer of due) reader.want(timer.shard, timer.dueAt)
      throw error
    } finally {
      for (const timer of leased) direct.unreserve(timer)
      reader.done(due.filter((timer) => this.#alone.get(timer.jobId) !== timer))
    }
    return { waitMs: 0, promoted: due.length }
  }

  /** Decides a few timers alone: a transaction each, which must not keep the batches of others waiting. */
  async runAlone(): Promise<{ waitMs: number }> {
    const taken = [...this.#alone.values()].slice(0, ALONE_BATCH)
    if (taken.length === 0) return { waitMs: LONGEST_WAIT_MS }
    const { reader } = this.#deps
    const left = [...taken]
    const lane = async () => {
      for (let timer = left.shift(); timer; timer = left.shift()) {
        await this.#deps.alone.promote(timer.shard, timer.jobId)
        this.#conflicts.delete(timer.jobId)
        // At once: what is left of it is due again before the others of this step are decided.
        this.#alone.delete(timer.jobId)
        reader.done([timer])
      }
    }
    try {
      await Promise.all(Array.from({ length: ALONE_LANES }, lane))
    } catch (error) {
      for (const timer of taken) reader.want(timer.shard, timer.dueAt)
      throw error
    } finally {
      for (const timer of taken) this.#alone.delete(timer.jobId)
      reader.done(taken)
    }
    return { waitMs: this.#alone.size > 0 ? 0 : LONGEST_WAIT_MS }
  }

  /** Due timers wait for room in an executor of this node. */
  get holds(): boolean {
    return this.#holds
  }

  async #promote(due: Timer[], leased: Set<Timer>): Promise<void> {
    const { clock, schedules, definitions, turns } = this.#deps
    const now = clock.now()
    const known: { shard: number; scheduleId: string }[] = []
    for (const timer of due) if (timer.scheduleId !== null) known.push(timer as { shard: number; scheduleId: string })
    await schedules.load(known)
    const oneOffs: Planned[] = []
    const recurring: Planned[] = []
    const alone: Timer[] = []
    for (const timer of inOrder(due)) {
      const isOneOff = timer.nominalAt !== null && timer.scheduleId === null
      const next = isOneOff ? NEVER : this.#plainNext(timer, now)
      if (next === null) {
        alone.push(timer)
        continue
      }
      const isLeased = leased.has(timer)
      const definition = isLeased && !isOneOff ? definitions.recent(timer) : null
      const planned: Planned = {
        timer,
        definition,
        shard: timer.shard,
        jobId: timer.jobId,
        version: timer.version,
        nextNominalAt: next.nominalAt,
        nextDueAt: next.dueAt,
        turn: isLeased ? turns.again(now, timer) : turns.next(now, timer),
        leased: isLeased,
        wanted: isLeased && definition === null,
        queueId: timer.queueId,
      }
      if (isOneOff) oneOffs.push(planned)
      else recurring.push(planned)
    }
    if (recurring.length > 0) alone.push(...(await this.#carry(recurring, now, promoteRecurring)))
    if (oneOffs.length > 0) await this.#carry(oneOffs, now, promoteOneOffs)
    for (const timer of alone) {
      if (this.#alone.size < MAX_ALONE && !this.#alone.has(timer.jobId)) this.#alone.set(timer.jobId, timer)
    }
    if (alone.length > 0) this.#deps.onAlone()
  }

  /** The next time of a timer that makes exactly one run and goes on; null if it takes more thought. */
  #plainNext(timer: Timer, now: Instant): { nominalAt: Instant; dueAt: Instant } | null {
    if (timer.nominalAt === null || timer.scheduleId === null) return null
    if (now - timer.nominalAt - timer.jitterMs >= FRESH_MS) return null
    if (this.#conflicts.size > 0 && this.#conflicts.has(timer.jobId)) return null
    if (timer.remainingRuns !== null && timer.remainingRuns <= 1) return null
    const known = this.#deps.schedules.get(timer.scheduleId)
    const next = known?.schedule.next(timer.nominalAt) ?? null
    if (!known || next === null) return null
    const dueAt = dueOf(next, timer.jitterMs, known.schedule)
    // All times that have come are decided together.
    return dueAt > now ? { nominalAt: next, dueAt } : null
  }

  /** Sends one batch and hands on what was born; only what the statement returned, never what was sent. Answers what takes more thought. */
  async #carry(
    items: Planned[],
    now: Instant,
    send: (db: Vital, items: Planned[], lease: LeaseTerms) => Promise<Promoted>,
  ): Promise<Timer[]> {
    const { db, leaseMs, direct, definitions, random, reader, wakeups, stopping } = this.#deps
    const lease: LeaseTerms = { holder: newHolder(random), now, leaseMs }
    let promoted: Promoted
    try {
      promoted = await send(db, items, lease)
    } catch (error) {
      if (!(error instanceof UnknownOutcome)) throw error
      const lost = { holder: lease.holder, backendPid: error.backendPid }
      await direct.deliver(await recoverLeases(this.#deps, lost, stopping))
      for (const { timer } of items) reader.want(timer.shard, timer.dueAt)
      return []
    }
    const { born, overlapped, limitedQueueIds, definitions: read } = promoted
    const leases: Lease[] = []
    const alone: Timer[] = []
    for (const { timer, definition, leased, turn } of items) {
      const { jobId, scheduleId, queueId, priority, delivery } = timer
      const isNamed = (keys: ReadonlySet<string>) => keys.size > 0 && keys.has(timerKey(timer))
      if (isNamed(overlapped)) continue
      if (born !== null && !isNamed(born)) {
        // Under such a policy most likely because it met a live run.
        if (timer.overlap > OVERLAP.skip) alone.push(timer)
        else this.#lookAgainAt(timer)
      } else if (leased && !limitedQueueIds.has(queueId)) {
        const fresh = read.get(jobId)
        if (fresh && scheduleId !== null) definitions.remember(jobId, fresh.version, fresh.json)
        leases.push(leaseOf(timer, lease, fresh?.json ?? definition))
      } else wakeups.ready({ queueId, priority, delivery, turn })
    }
    await direct.deliver(leases)
    return alone
  }

  /** Not returned: locked, or changed by somebody. It is read again; the second time it is decided alone. */
  #lookAgainAt(timer: Timer): void {
    if (this.#conflicts.size > MAX_CONFLICTS) this.#conflicts.clear()
    if (timer.scheduleId !== null) this.#conflicts.add(timer.jobId)
    this.#deps.reader.want(timer.shard, timer.dueAt)
  }
}

/** A one-off has no next time. */
const NEVER = { nominalAt: 0, dueAt: 0 }

function leaseOf(timer: Timer, { holder, now, leaseMs }: LeaseTerms, definition: string | null): Lease {
  const { timeoutMs } = timer
  return {
    shard: timer.shard,
    jobId: timer.jobId,
    nominalAt: timer.nominalAt as Instant,
    attempt: 1,
    holder,
    tenantId: timer.tenantId,
    queueId: timer.queueId,
    jobVersion: timer.jobVersion,
    failures: 0,
    failureClass: null,
    timeoutMs,
    leasedAt: now,
    leaseUntil: now + Math.min(leaseMs, timeoutMs + OVERTIME_MS),
    deadline: now + timeoutMs,
    atMostOnce: isOnce(timer.delivery),
    oneOff: timer.scheduleId === null,
    definition,
  }
}

/** By shard and job: the order in which every batch takes its rows. */
function inOrder(timers: Timer[]): Timer[] {
  return timers.sort((a, b) => a.shard - b.shard || (a.jobId < b.jobId ? -1 : 1))
}
