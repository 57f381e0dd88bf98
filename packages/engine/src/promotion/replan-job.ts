import { recordChange } from '../audit/record-change.sql.ts'
import { BelfryError } from '../errors.ts'
import type { Calendar, ScheduleSpec } from '../job/definition.ts'
import { shardOfJob } from '../job/ids.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { calendarsOf, resolveSpec } from '../schedule/resolve-spec.ts'
import { type Schedule, scheduleId } from '../schedule/schedule.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Database, Transaction } from '../store/database.ts'
import type { JobOfCalendar } from '../tenants/calendar-jobs.sql.ts'
import { type LockedTimer, lockTimer, NEVER_DUE, takesOverAt, writeTimer } from '../timers/lock-timer.sql.ts'
import { type DecideDeps, decideJob } from './decide-job.sql.ts'
import { dueOf } from './due.ts'
import { type JobPlan, pauseJob, readJobPlan } from './job-plan.sql.ts'
import { lastDifference } from './last-difference.ts'
import type { KnownSchedule } from './schedules.sql.ts'
import { skipUndecided } from './skip-undecided.ts'

export interface ReplanDeps extends DecideDeps {
  db: Database
  clock: Clock
  wakeups: Wakeups
  calendars: { read(tenantId: number, names: readonly string[]): Promise<ReadonlyMap<string, Calendar>> }
}

/** What was done: nothing, the job follows its new schedule, or it is still deciding what was due under the old one. */
export type Replanned = 'same' | 'planned' | 'moved' | 'more'

interface Locked {
  timer: LockedTimer
  plan: JobPlan
  now: Instant
  /** Written down with the change. */
  why: { action: 'replan' | 'zone_data'; actor: string }
  /** What the change does to a job that has no time after it. */
  effect: string
}

interface Done {
  outcome: Replanned
  afterCommit?: () => void
}

type Planned = KnownSchedule & { id: string }

const SAME: Done = { outcome: 'same' }
const NO_TIMES: Schedule = { next: () => null, latest: () => null, count: () => 0 }

/**
 * Plans one recurring job anew after its rule has changed without it: a calendar that it names, or the zone data. One
 * transaction under the job's lock: what was due under the old rule is decided first, and the next time is the first after
 * now that the new rule gives; so no time is lost or doubled. Doing it twice is harmless.
 */
export class ReplanJob {
  readonly #deps: ReplanDeps

  constructor(deps: ReplanDeps) {
    this.#deps = deps
  }

  /** Those of a tenant's jobs whose schedule holds other days than their calendars do now. Without a lock: most need none. */
  async notBy(tenantId: number, jobs: readonly JobOfCalendar[]): Promise<string[]> {
    const names = new Set(jobs.flatMap(({ definition }) => calendarsOf(definition.schedule as ScheduleSpec)))
    const found = await this.#deps.calendars.read(tenantId, [...names])
    const isOther = ({ jobId, scheduleId: planned, definition }: JobOfCalendar): boolean => {
      const calendarOf = (name: string) => found.get(name)
      const asked = definition.schedule as ScheduleSpec
      // One that names a calendar that is gone is complained about under its lock.
      if (calendarsOf(asked).some((name) => !found.has(name))) return true
      return scheduleId(resolveSpec(asked, { jobId, calendarOf })) !== planned
    }
    return jobs.filter(isOther).map(({ jobId }) => jobId)
  }

  /** The calendar has other days than the job's schedule holds, perhaps. */
  byCalendar(jobId: string, calendar: string): Promise<Replanned> {
    const why = { action: 'replan', actor: `calendar ${calendar}` } as const
    return this.#locked(jobId, why, async (tx, locked) => {
      // Read under the lock, so that whoever comes later cannot have read older days.
      const next = await this.#planOf(locked)
      if (next instanceof BelfryError) return locked.plan.isPaused ? SAME : this.#pauseActive(tx, locked, next.message)
      if (next.id === locked.timer.scheduleId) return SAME
      return locked.plan.isPaused ? this.#replanPaused(tx, locked, next) : this.#replanActive(tx, locked, next)
    })
  }

  /** The new days leave no schedule that could be followed: it waits for a person, and does not go on by the old ones. */
  async #pauseActive(tx: Transaction, locked: Locked, because: string): Promise<Done> {
    const old = { id: locked.timer.scheduleId as string, ...(await this.#scheduleOf(locked.timer)) }
    const ended = { ...old, schedule: NO_TIMES }
    return this.#replanActive(tx, { ...locked, effect: `leaves it no schedule: ${because}` }, ended)
  }

  /** An error: its calendars are there, and no schedule comes of them. */
  async #planOf({ timer, plan }: Locked): Promise<Planned | BelfryError> {
    const { schedules, calendars } = this.#deps
    const asked = plan.definition.schedule as ScheduleSpec
    const found = await calendars.read(plan.tenantId, calendarsOf(asked))
    const spec = resolveSpec(asked, { jobId: timer.jobId, calendarOf: (name) => found.get(name) })
    let known: Planned
    try {
      known = schedules.of(spec)
    } catch (error) {
      if (error instanceof BelfryError) return error
      throw error
    }
    if (known.id !== timer.scheduleId) await schedules.intern([{ shard: timer.shard, spec }])
    return known
  }

  async #replanActive(tx: Transaction, locked: Locked, next: Planned): Promise<Done> {
    const { wakeups } = this.#deps
    const { now } = locked
    const isDue = (locked.timer.nominalAt as Instant) <= now
    const decided = isDue ? await decideJob(tx, this.#deps, locked.timer, now, 'nominal') : null
    const { ready, asked, timer } = decided ?? { ready: [], asked: [], timer: locked.timer }
    const tell = () => {
      for (const run of ready) wakeups.ready(run)
      for (const nominalAt of asked) wakeups.cancel(locked.timer.jobId, nominalAt)
    }
    // Its last time came before the change.
    if (timer === null) return { outcome: 'planned', afterCommit: tell }
    if ((timer.nominalAt as Instant) <= now) return { outcome: 'more', afterCommit: tell }
    const moved = await this.#write(tx, { ...locked, timer }, next, after(takesOverAt(timer, now), next))
    return {
      outcome: moved.outcome,
      afterCommit: () => {
        tell()
        moved.afterCommit?.()
      },
    }
  }

  /**
   * Times that fell into the pause wait for its end, as far as both rules give them. The last one that only one of them has
   * ends that: with all before it, it is skipped, in one range that says so, since what is undecided begins at one instant.
   */
  async #replanPaused(tx: Transaction, locked: Locked, next: Planned): Promise<Done> {
    const { timer, now } = locked
    const from = timer.nominalAt as Instant
    if (from > now) return this.#write(tx, locked, next, after(takesOverAt(timer, now), next))
    const { schedule } = await this.#scheduleOf(timer)
    const differs = lastDifference(schedule, next.schedule, { after: from - 1, until: now })
    if (differs !== null) await skipUndecided(tx, timer, schedule, { reason: 'paused', until: differs, now })
    const nominalAt = next.schedule.next(differs ?? from - 1)
    return this.#write(tx, locked, next, { nominalAt, decidedUntil: differs ?? timer.decidedUntil })
  }

  /** The zone data gives another next time than the timer has. What is due already is promoted as it stands. */
  byZoneData(jobId: string, version: string): Promise<Replanned> {
    const why = { action: 'zone_data', actor: `tzdata ${version}` } as const
    return this.#locked(jobId, why, async (tx, locked) => {
      const { timer, now } = locked
      const known = await this.#scheduleOf(timer)
      const nominalAt = expectedNext(timer, known, now)
      if (nominalAt === timer.nominalAt) return SAME
      return this.#write(
        tx,
        locked,
        { id: timer.scheduleId as string, ...known },
        { nominalAt, decidedUntil: timer.decidedUntil },
      )
    })
  }

  async #write(
    tx: Transaction,
    { timer, plan, now, why, effect }: Locked,
    { id, schedule }: Planned,
    to: { nominalAt: Instant | null; decidedUntil: Instant | null },
  ): Promise<Done> {
    const { jobId, shard } = timer
    const isEnd = to.nominalAt === null
    // Without a time it waits for a person, who may mend the calendar; resuming it then counts from here.
    const nominalAt = to.nominalAt ?? takesOverAt(to, now) + 1
    const isWaiting = plan.isPaused || isEnd
    const dueAt = isWaiting ? NEVER_DUE : Math.max(now, dueOf(nominalAt, timer.jitterMs, schedule))
    await writeTimer(tx, { ...timer, scheduleId: id, nominalAt, decidedUntil: to.decidedUntil, dueAt })
    if (isEnd && !plan.isPaused) await pauseJob(tx, timer, `${why.actor} ${effect}`, now)
    if (nominalAt === timer.nominalAt && !isEnd) return { outcome: 'planned' }
    const shown = (at: Instant | null) => ({ nextRunAt: at === null ? null : new Date(at).toISOString() })
    await recordChange(tx, {
      ...why,
      tenantId: plan.tenantId,
      subject: 'job',
      subjectId: jobId,
      before: shown(timer.nominalAt),
      after: shown(to.nominalAt),
      at: now,
    })
    return { outcome: 'moved', ...(isWaiting ? {} : { afterCommit: () => this.#deps.wakeups.timer(shard, dueAt) }) }
  }

  #scheduleOf({ shard, scheduleId }: LockedTimer): Promise<KnownSchedule> {
    return this.#deps.schedules.mustGet({ shard, scheduleId: scheduleId as string })
  }

  async #locked(
    jobId: string,
    why: Locked['why'],
    work: (tx: Transaction, locked: Locked) => Promise<Done>,
  ): Promise<Replanned> {
    const { db, clock } = this.#deps
    const shard = shardOfJob(jobId)
    const { outcome, afterCommit } = await db.bulk.transaction(async (tx) => {
      const timer = await lockTimer(tx, shard, jobId)
      // One that was created by SQL and is not planned yet will be planned by what holds then.
      if (!timer || timer.scheduleId === null || timer.nominalAt === null) return SAME
      const plan = await readJobPlan(tx, shard, jobId)
      return plan?.definition.schedule
        ? work(tx, { timer, plan, now: clock.now(), why, effect: 'leaves it no time to run' })
        : SAME
    })
    afterCommit?.()
    return outcome
  }
}

const after = (decidedUntil: Instant, { schedule }: Planned) => ({
  nominalAt: schedule.next(decidedUntil),
  decidedUntil,
})

/**
 * The next time that the schedule gives by the zone data of this process. One that has gone by is still the next: no run
 * and no skip has been made for it, so promotion catches up on it.
 */
export function expectedNext(
  { nominalAt, decidedUntil }: Pick<LockedTimer, 'nominalAt' | 'decidedUntil'>,
  { schedule }: KnownSchedule,
  now: Instant,
): Instant | null {
  return nominalAt === null || nominalAt <= now ? nominalAt : schedule.next(decidedUntil ?? now)
}
