import { BelfryError } from '../errors.ts'
import { FIRST_ID } from '../job/ids.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Queryable } from '../store/database.ts'
import { isOutage } from '../store/database-errors.ts'
import { type PlannedTimer, readPlannedTimers } from '../timers/read-planned.sql.ts'
import { expectedNext, type Replanned } from './replan-job.ts'
import type { Schedules } from './schedules.sql.ts'
import { lowerZoneMarks, markZoneData, raiseZoneData, readZoneMarks } from './zone-marks.sql.ts'

export interface ZoneKeeperDeps {
  db: Queryable
  clock: Clock
  logger: Logger
  shards: number
  schedules: Schedules
  replan: { byZoneData(jobId: string, version: string): Promise<Replanned> }
  /** The edition of this process; null: the runtime does not say, and nothing is kept. */
  version: string | null
}

/** Who had the shards before has stopped promoting them by then. */
const SETTLE_MS = 5_000
const MAX_TIMERS = 500
/** Between two pages: it is in no hurry, and others work meanwhile. */
const PAUSE_MS = 10
const LONGEST_WAIT_MS = 1_000
/** An older node says so again and again, since it plans jobs all the time. */
const SAY_OLDER_MS = 10_000

/**
 * Keeps next times true when zones' rules change. A node that has newer zone data than its shards were planned by looks
 * through their timers, in the background, and plans those anew whose next time has become another. Each node does its own
 * shards; whoever marks the last of them raises the edition of all. A node with older data lowers no edition and moves no
 * timer; it only takes the marks of shards away, so that newer ones look again at what it planned.
 */
export class ZoneKeeper implements Step {
  readonly name = 'zone keeper'
  readonly #deps: ZoneKeeperDeps
  #owned: readonly number[] = []
  /** When to look which of the owned shards have to be looked through. */
  #lookAt: Instant = Number.POSITIVE_INFINITY
  /** Where the way through each shard is; null: it is at its end. */
  readonly #walk = new Map<number, string | null>()
  /** Jobs that somebody held: they are tried again at the end. */
  #held: string[] = []
  #moved = 0
  #newest: string | null = null
  #saidAt: Instant = Number.NEGATIVE_INFINITY

  constructor(deps: ZoneKeeperDeps) {
    this.#deps = deps
  }

  /** The nodes that promote have changed, and perhaps the shards of this one. */
  own(shards: readonly number[]): void {
    this.#owned = shards
    this.#walk.clear()
    this.#held = []
    this.#lookAt = this.#deps.version === null ? Number.POSITIVE_INFINITY : this.#deps.clock.now() + SETTLE_MS
  }

  /** The pulse saw by which edition all timers are planned. */
  saw({ zoneData }: { zoneData: string | null }): boolean {
    this.#newest = zoneData
    return false
  }

  /** What is wrong with this node's zone data; null: nothing. */
  weakness(): string | null {
    const { version } = this.#deps
    if (!this.#isOlder(version)) return null
    return `this node has the zone data of ${version}, and others plan by ${this.#newest}: bring it up to date`
  }

  /** One page of timers. */
  async runOnce(): Promise<{ waitMs: number }> {
    const { clock, version } = this.#deps
    if (version === null) return { waitMs: LONGEST_WAIT_MS }
    if (this.#isOlder(version)) await this.#sayOlder(version)
    if (clock.now() >= this.#lookAt) await this.#look(version)
    if (this.#walk.size === 0) return { waitMs: LONGEST_WAIT_MS }
    const asked = [...this.#walk].flatMap(([shard, after]) => (after === null ? [] : [{ shard, after }]))
    if (asked.length > 0) await this.#page(version, asked)
    else this.#held = await this.#replan(this.#held, version)
    if (this.#held.length === 0 && [...this.#walk.values()].every((after) => after === null)) await this.#end(version)
    return { waitMs: PAUSE_MS }
  }

  #isOlder(version: string | null): version is string {
    return version !== null && this.#newest !== null && version < this.#newest
  }

  async #sayOlder(version: string): Promise<void> {
    const { db, clock, logger } = this.#deps
    if (clock.now() < this.#saidAt + SAY_OLDER_MS) return
    if (this.#saidAt === Number.NEGATIVE_INFINITY)
      logger.warn(
        "this node's zone data is older than the others': times that it plans may be wrong until it is brought up to date",
        {
          zoneData: version,
          newest: this.#newest,
        },
      )
    this.#saidAt = clock.now()
    await lowerZoneMarks(db, version)
  }

  async #look(version: string): Promise<void> {
    const { all, byShard } = await readZoneMarks(this.#deps.db)
    this.#lookAt = Number.POSITIVE_INFINITY
    // Until all have got there, older nodes may have planned jobs of shards that were marked already.
    const isUnderWay = all === null || all < version
    for (const shard of this.#owned) {
      if (isUnderWay || (byShard.get(shard) ?? '') < version) this.#walk.set(shard, FIRST_ID)
    }
    this.#moved = 0
  }

  async #page(version: string, asked: readonly { shard: number; after: string }[]): Promise<void> {
    const limit = Math.ceil(MAX_TIMERS / asked.length)
    const timers = await readPlannedTimers(this.#deps.db, asked, limit)
    this.#held.push(...(await this.#replan(await this.#changed(timers), version)))
    const byShard = new Map(asked.map(({ shard }) => [shard, [] as string[]]))
    for (const { shard, jobId } of timers) byShard.get(shard)?.push(jobId)
    for (const [shard, jobIds] of byShard) {
      // It may have been given up meanwhile.
      if (this.#walk.has(shard)) this.#walk.set(shard, jobIds.length < limit ? null : (jobIds.at(-1) ?? null))
    }
  }

  /** Those whose next time is another by the zone data of this process. */
  async #changed(timers: readonly PlannedTimer[]): Promise<string[]> {
    const { schedules, clock } = this.#deps
    const recurring = timers.filter(({ scheduleId }) => scheduleId !== null) as (PlannedTimer & {
      scheduleId: string
    })[]
    await schedules.load(recurring)
    const changed = recurring.filter((timer) => {
      const known = schedules.get(timer.scheduleId)
      // What has no zone, no edition can change.
      if (!known || known.spec.timezone === 'UTC') return false
      return expectedNext(timer, known, clock.now()) !== timer.nominalAt
    })
    return changed.map(({ jobId }) => jobId)
  }

  /** Answers those that somebody held. */
  async #replan(jobIds: readonly string[], version: string): Promise<string[]> {
    const held: string[] = []
    for (const jobId of jobIds) {
      try {
        if ((await this.#deps.replan.byZoneData(jobId, version)) === 'moved') this.#moved++
      } catch (error) {
        if (!(error instanceof BelfryError) || isOutage(error)) throw error
        if (error.code === 'in_progress') held.push(jobId)
        else
          this.#deps.logger.warn('a job could not be planned anew', { jobId, zoneData: version, error: error.message })
      }
    }
    return held
  }

  async #end(version: string): Promise<void> {
    const { db, logger, shards } = this.#deps
    const walked = [...this.#walk.keys()]
    this.#walk.clear()
    await markZoneData(db, version, walked)
    await raiseZoneData(db, version, shards)
    const done = { zoneData: version, shards: walked.length, moved: this.#moved }
    if (this.#moved > 0) logger.info('zones have other rules now, and the jobs concerned were planned anew', done)
    else logger.debug('timers were looked through for new zone data', done)
  }
}
