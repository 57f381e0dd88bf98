import { OVERLAP } from '../job/states.ts'
import { newHolder } from '../leases/holder.ts'
import type { Lease } from '../leases/lease.ts'
import { recoverLeases } from '../leases/recover.sql.ts'
import type { Turns } from '../ready/turn.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Random } from '../runtime/random.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import { type Database, UnknownOutcome } from '../store/database.ts'
import type { Timer } from '../timers/timer.ts'
import type { TimerReader } from '../timers/timer-reader.ts'
import { FRESH_MS } from './decide.ts'
import type { DirectLeases } from './direct-leases.ts'
import { dueOf } from './due.ts'
import { BORN_READY, type LeaseTerms } from './lease-terms.ts'
import type { PromoteAlone } from './promote-alone.ts'
import { type OneOffPromotion, promoteOneOffs } from './promote-one-offs.sql.ts'
import { promoteRecurring, type RecurringPromotion } from './promote-recurring.sql.ts'
import type { Schedules } from './schedules.sql.ts'

export interface PromoterDeps {
  db: Database
  clock: Clock
  random: Random
  logger: Logger
  reader: TimerReader
  schedules: Schedules
  turns: Turns
  wakeups: Wakeups
  direct: DirectLeases
  alone: PromoteAlone
  leaseMs: number
  stopping: AbortSignal
}

const BATCH = 1_000
const LONGEST_WAIT_MS = 1_000
/** Jobs whose compare-and-set failed lately; more than this means that something else is wrong, and it is forgotten. */
const MAX_CONFLICTS = 10_000

interface Planned {
  timer: Timer
  turn: number
  terms: LeaseTerms
}

/**
 * Carries due timers on: each becomes a run, and the timer its next time, in one statement per batch. What does not fit the
 * plain case (catch-up, a last run, a job that nobody has planned, a compare-and-set that failed twice) is decided alone,
 * in a transaction that holds the timer.
 */
export class Promoter implements Step {
  readonly #deps: PromoterDeps
  readonly #conflicts = new Set<string>()

  constructor(deps: PromoterDeps) {
    this.#deps = deps
  }

  /** Promotes one batch. Several may run at once: each takes other timers. */
  async runOnce(): Promise<{ waitMs: number; promoted: number }> {
    const { reader, clock } = this.#deps
    const due = reader.takeDue(BATCH)
    if (due.length === 0) {
      return { waitMs: Math.min(LONGEST_WAIT_MS, Math.max(1, reader.nextDueAt() - clock.now())), promoted: 0 }
    }
    try {
      await this.#promote(due)
    } catch (error) {
      // Nothing is lost: the timers are still in the table, and are read again.
      for (const timer of due) reader.want(timer.shard, timer.dueAt)
      throw error
    }
    return { waitMs: 0, promoted: due.length }
  }

  async #promote(due: Timer[]): Promise<void> {
    const { clock, schedules } = this.#deps
    const now = clock.now()
    await schedules.load(due.flatMap(({ shard, scheduleId }) => (scheduleId === null ? [] : [{ shard, scheduleId }])))
    const oneOffs: Timer[] = []
    const recurring: { timer: Timer; nextNominalAt: Instant; nextDueAt: Instant }[] = []
    const alone: Timer[] = []
    for (const timer of due) {
      if (timer.nominalAt !== null && timer.scheduleId === null) oneOffs.push(timer)
      else {
        const next = this.#conflicts.has(timer.jobId) ? null : this.#plainNext(timer, now)
        if (next) recurring.push({ timer, ...next })
        else alone.push(timer)
      }
    }
    inOrder(oneOffs, (timer) => timer)
    inOrder(recurring, ({ timer }) => timer)
    if (recurring.length > 0) await this.#promoteRecurring(recurring, now)
    if (oneOffs.length > 0) await this.#promoteOneOffs(oneOffs, now)
    for (const timer of alone) {
      await this.#deps.alone.promote(timer.shard, timer.jobId)
      this.#conflicts.delete(timer.jobId)
    }
  }

  /** The next time of a timer that makes exactly one run and goes on; null if it takes more thought. */
  #plainNext(timer: Timer, now: Instant): { nextNominalAt: Instant; nextDueAt: Instant } | null {
    if (timer.nominalAt === null || timer.scheduleId === null || now - timer.nominalAt >= FRESH_MS) return null
    if (timer.remainingRuns !== null && timer.remainingRuns <= 1) return null
    if (timer.overlap !== OVERLAP.skip && timer.overlap !== OVERLAP.allow) return null
    const known = this.#deps.schedules.get(timer.scheduleId)
    const next = known?.schedule.next(timer.nominalAt) ?? null
    if (!known || next === null) return null
    return { nextNominalAt: next, nextDueAt: Math.max(now, dueOf(next, timer.jitterMs, known.schedule)) }
  }

  async #promoteRecurring(
    items: { timer: Timer; nextNominalAt: Instant; nextDueAt: Instant }[],
    now: Instant,
  ): Promise<void> {
    const { db, leaseMs } = this.#deps
    const planned = this.#plan(
      items.map(({ timer }) => timer),
      now,
    )
    const batch = items.map(({ nextNominalAt, nextDueAt }, i): RecurringPromotion => {
      const { timer, turn, terms } = planned.items[i] as Planned
      return {
        shard: timer.shard,
        jobId: timer.jobId,
        version: timer.version,
        nextNominalAt,
        nextDueAt,
        turn,
        ...terms,
      }
    })
    const done = new Set<string>()
    const born = new Map<string, string | null>()
    await this.#orRecover(planned, now, async () => {
      for (const { jobId, overlapped } of await promoteRecurring(db, batch, { now, leaseUntil: now + leaseMs })) {
        done.add(jobId)
        if (!overlapped) born.set(jobId, null)
      }
      await this.#deliver(planned, born, now)
    })
    this.#lookAgainAt(planned.items.filter(({ timer }) => !done.has(timer.jobId)))
  }

  async #promoteOneOffs(timers: Timer[], now: Instant): Promise<void> {
    const { db, leaseMs } = this.#deps
    const planned = this.#plan(timers, now)
    const batch = planned.items.map(
      ({ timer, turn, terms }): OneOffPromotion => ({
        shard: timer.shard,
        jobId: timer.jobId,
        version: timer.version,
        turn,
        ...terms,
      }),
    )
    const born = new Map<string, string | null>()
    await this.#orRecover(planned, now, async () => {
      for (const { jobId, definition } of await promoteOneOffs(db, batch, { now, leaseUntil: now + leaseMs }))
        born.set(jobId, definition)
      await this.#deliver(planned, born, now)
    })
    this.#lookAgainAt(planned.items.filter(({ timer }) => !born.has(timer.jobId)))
  }

  /** Gives each timer its turn, and a lease where an executor of this node has room and nothing older waits. */
  #plan(timers: Timer[], now: Instant): { holder: string; items: Planned[] } {
    const holder = newHolder(this.#deps.random)
    const items = timers.map((timer): Planned => {
      const terms = this.#deps.direct.reserve(timer) ? { holder, deadline: now + timer.timeoutMs } : BORN_READY
      return { timer, turn: this.#deps.turns.next(now, timer.priority), terms }
    })
    return { holder, items }
  }

  async #orRecover(
    planned: { holder: string; items: Planned[] },
    sentAt: Instant,
    work: () => Promise<void>,
  ): Promise<void> {
    const { direct, reader, stopping } = this.#deps
    try {
      await work()
    } catch (error) {
      for (const { timer, terms } of planned.items) if (terms.holder !== null) direct.unreserve(timer)
      if (!(error instanceof UnknownOutcome)) throw error
      const adopted = await recoverLeases(
        this.#deps,
        { holder: planned.holder, backendPid: error.backendPid, sentAt },
        stopping,
      )
      await direct.deliver(adopted)
      for (const { timer } of planned.items) reader.want(timer.shard, timer.dueAt)
    }
  }

  async #deliver(planned: { items: Planned[] }, born: Map<string, string | null>, now: Instant): Promise<void> {
    const { direct, wakeups, leaseMs } = this.#deps
    const leases: Lease[] = []
    for (const { timer, turn, terms } of planned.items) {
      const definition = born.get(timer.jobId)
      if (terms.holder !== null) direct.unreserve(timer)
      if (definition === undefined) continue
      if (terms.holder === null) wakeups.ready(timer.queueId, timer.priority, turn)
      else leases.push(leaseOf(timer, terms.holder, terms.deadline, { now, leaseUntil: now + leaseMs }, definition))
    }
    await direct.deliver(leases)
  }

  /** Not returned: locked, or changed by somebody. It is read again; the second time it is decided alone. */
  #lookAgainAt(missed: Planned[]): void {
    if (this.#conflicts.size > MAX_CONFLICTS) this.#conflicts.clear()
    for (const { timer } of missed) {
      if (timer.scheduleId !== null) this.#conflicts.add(timer.jobId)
      this.#deps.reader.want(timer.shard, timer.dueAt)
    }
  }
}

function leaseOf(
  timer: Timer,
  holder: string,
  deadline: Instant,
  { now, leaseUntil }: { now: Instant; leaseUntil: Instant },
  definition: string | null,
): Lease {
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
    dueAt: timer.dueAt,
    leasedAt: now,
    leaseUntil: Math.min(leaseUntil, deadline),
    deadline,
    atMostOnce: timer.delivery === 1,
    oneOff: timer.scheduleId === null,
    definition,
  }
}

/** By shard and job: the order in which every batch takes its rows. */
function inOrder<Item>(items: Item[], timerOf: (item: Item) => Timer): void {
  items.sort((a, b) => {
    const [one, other] = [timerOf(a), timerOf(b)]
    return one.shard - other.shard || (one.jobId < other.jobId ? -1 : 1)
  })
}
