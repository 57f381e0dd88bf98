import { BelfryError } from '../errors.ts'
import { FIRST_ID, shardOfKey } from '../job/ids.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Queryable } from '../store/database.ts'
import { isOutage } from '../store/database-errors.ts'
import { readJobsOfCalendar } from '../tenants/calendar-jobs.sql.ts'
import { raiseReplanned } from '../tenants/calendar-rows.sql.ts'
import { insertingTransactions } from '../tenants/tenant-rows.sql.ts'
import type { ReplanJob } from './replan-job.ts'

/** A calendar whose jobs may not know of its last change. */
export interface ChangedCalendar {
  tenantId: number
  name: string
  version: number
}

export interface ReplannerDeps {
  db: Queryable
  clock: Clock
  logger: Logger
  shards: number
  replan: Pick<ReplanJob, 'byCalendar' | 'notBy'>
}

/** Jobs of one page; some of them at a time, each in a transaction of its own. */
const PAGE = 100
const AT_ONCE = 4
/** Whoever read the old days just before the change has begun to insert its job by then. */
const SETTLE_MS = 10_000
const LONGEST_WAIT_MS = 1_000

/** The way through the jobs of one calendar: once at once, and once more when nobody can be creating by the old days. */
interface Walk extends ChangedCalendar {
  seenAt: Instant
  pass: 'first' | 'settling' | 'second'
  /** The last job that was looked at; null: there are no more. */
  after: string | null
  /** Jobs that somebody held: they are tried again at the end. */
  left: string[]
  /** Transactions that may be creating a job by the old days; null: not asked yet. */
  creating: Set<string> | null
  moved: number
}

/**
 * Plans the jobs of changed calendars anew. `calendars.replanned` says what has been done, and rises only when all is done:
 * after a crash it is done again, harmlessly. The owner of the shard that a calendar's name falls into does it; two at
 * once are harmless too.
 */
export class Replanner implements Step {
  readonly name = 'replanner'
  readonly #deps: ReplannerDeps
  readonly #walks = new Map<string, Walk>()
  #owned = new Set<number>()

  constructor(deps: ReplannerDeps) {
    this.#deps = deps
  }

  own(shards: readonly number[]): void {
    this.#owned = new Set(shards)
  }

  /** The pulse saw these calendars, and no others. */
  saw({ changedCalendars: changed }: { changedCalendars: readonly ChangedCalendar[] }): boolean {
    if (changed.length === 0 && this.#walks.size === 0) return false
    const { clock, shards } = this.#deps
    const mine = changed.filter(({ tenantId, name }) => this.#owned.has(shardOfKey(tenantId, name, shards)))
    const keys = new Set(mine.map(keyOf))
    for (const key of this.#walks.keys()) if (!keys.has(key)) this.#walks.delete(key)
    const begin = { pass: 'first', after: FIRST_ID, creating: null, moved: 0 } as const
    for (const calendar of mine) {
      const key = keyOf(calendar)
      if (!this.#walks.has(key)) this.#walks.set(key, { ...calendar, ...begin, seenAt: clock.now(), left: [] })
    }
    return this.#walks.size > 0
  }

  /** One page of one calendar's jobs. */
  async runOnce(): Promise<{ waitMs: number }> {
    for (const [key, walk] of this.#walks) {
      if (walk.pass === 'settling' && !(await this.#isSettled(walk))) continue
      // The others get their turn before its next page.
      this.#walks.delete(key)
      this.#walks.set(key, walk)
      await this.#page(walk)
      if (walk.after === null && walk.left.length === 0) await this.#endPass(key, walk)
      return { waitMs: walk.left.length > 0 ? LONGEST_WAIT_MS / 10 : 0 }
    }
    return { waitMs: LONGEST_WAIT_MS }
  }

  async #isSettled(walk: Walk): Promise<boolean> {
    const { db, clock } = this.#deps
    if (clock.now() < walk.seenAt + SETTLE_MS) return false
    const open = await insertingTransactions(db)
    walk.creating ??= open
    for (const transaction of walk.creating) if (!open.has(transaction)) walk.creating.delete(transaction)
    if (walk.creating.size > 0) return false
    walk.pass = 'second'
    walk.after = FIRST_ID
    return true
  }

  async #page(walk: Walk): Promise<void> {
    const { db, replan } = this.#deps
    if (walk.after === null) {
      walk.left = await this.#replanAll(walk, walk.left)
      return
    }
    const { jobs, next } = await readJobsOfCalendar(db, walk, walk.after, PAGE)
    const held = await this.#replanAll(walk, await replan.notBy(walk.tenantId, jobs))
    walk.left.push(...held)
    walk.after = next
  }

  /** Answers those that have to be tried again. */
  async #replanAll(walk: Walk, jobIds: readonly string[]): Promise<string[]> {
    const again: string[] = []
    const one = async (jobId: string) => {
      if (!(await this.#replan(walk, jobId))) again.push(jobId)
    }
    for (let i = 0; i < jobIds.length; i += AT_ONCE) await Promise.all(jobIds.slice(i, i + AT_ONCE).map(one))
    return again
  }

  /** False: it has to be tried again. */
  async #replan(walk: Walk, jobId: string): Promise<boolean> {
    try {
      const outcome = await this.#deps.replan.byCalendar(jobId, walk.name)
      if (outcome === 'moved') walk.moved++
      return outcome !== 'more'
    } catch (error) {
      if (!(error instanceof BelfryError) || isOutage(error)) throw error
      if (error.code === 'in_progress') return false
      // Nothing that trying again would change: it goes on by the days that it has.
      this.#deps.logger.warn('a job could not be planned anew', { jobId, calendar: walk.name, error: error.message })
      return true
    }
  }

  async #endPass(key: string, walk: Walk): Promise<void> {
    if (walk.pass === 'first') {
      walk.pass = 'settling'
      return
    }
    const { tenantId, name, version, moved } = walk
    await raiseReplanned(this.#deps.db, walk)
    this.#walks.delete(key)
    this.#deps.logger.info('a calendar changed, and its jobs were planned anew', {
      tenantId,
      calendar: name,
      version,
      moved,
    })
  }
}

const keyOf = ({ tenantId, name, version }: ChangedCalendar): string => `${tenantId}.${name}.${version}`
