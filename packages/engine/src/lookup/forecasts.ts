import { refusal } from '../errors.ts'
import type { Schedules } from '../promotion/schedules.sql.ts'
import { Breather } from '../runtime/breather.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { DAY_MS, MINUTE_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { readRange, type When } from './filter.ts'
import { type Counted, countForecast } from './forecast-count.ts'
import { type Origins, readOrigins } from './forecast-origins.sql.ts'
import { type GroupedTimers, groupTimers } from './forecast-timers.sql.ts'

/** How far ahead a forecast looks. */
const MAX_AHEAD_MS = 7 * DAY_MS
const USUAL_MS = DAY_MS
/** Timers change little within it, and to group them takes seconds when there are many. */
const KEPT_MS = 60_000
const MAX_KEPT = 100

export interface ForecastRequest {
  from?: When | undefined
  to?: When | undefined
}

export interface Forecast extends Counted {
  from: Date
  to: Date
  /** When the timers were looked at. */
  asOf: Date
  /** How many timers there are that have a time to come; paused ones have none. */
  timers: number
}

export interface ForecastsDeps {
  clock: Clock
  schedules: Schedules
  shards: number
}

interface Kept {
  asOf: Instant
  found: Promise<{ timers: GroupedTimers; origins: Origins }>
}

/**
 * The coming load: how many runs per minute all timers will make, by queue and by origin. Timers are grouped by the database and
 * the groups kept for a minute, per tenant; whoever asks at the same time shares one answer.
 */
export class Forecasts {
  readonly #deps: ForecastsDeps
  readonly #kept = new Map<number | null, Kept>()

  constructor(deps: ForecastsDeps) {
    this.#deps = deps
  }

  /** Of one tenant as it reads, or of all (null). */
  async get(db: Queryable, tenantId: number | null, request: ForecastRequest): Promise<Forecast> {
    const { clock, schedules } = this.#deps
    const { from, to } = minutesOf(request, clock.now())
    const { asOf, found } = this.#groupsOf(db, tenantId)
    const { timers, origins } = await found
    await schedules.load(
      timers.groups.flatMap(({ shard, scheduleId }) => (scheduleId === null ? [] : [{ shard, scheduleId }])),
    )
    const counted = await countForecast(timers, {
      from,
      to,
      origins,
      scheduleOf: ({ scheduleId }) => (scheduleId === null ? null : (schedules.get(scheduleId)?.schedule ?? null)),
      breather: new Breather(clock),
    })
    return {
      ...counted,
      from: new Date(from * MINUTE_MS),
      to: new Date(to * MINUTE_MS),
      asOf: new Date(asOf),
      timers: Math.round(timers.timers / timers.coverage),
    }
  }

  #groupsOf(db: Queryable, tenantId: number | null): Kept {
    const now = this.#deps.clock.now()
    const kept = this.#kept.get(tenantId)
    if (kept && now - kept.asOf < KEPT_MS) return kept
    for (const [key, { asOf }] of this.#kept) if (now - asOf >= KEPT_MS) this.#kept.delete(key)
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear()
    const made = { asOf: now, found: this.#read(db, tenantId, now) }
    this.#kept.set(tenantId, made)
    // What failed is asked anew by the next.
    made.found.catch(() => {
      if (this.#kept.get(tenantId) === made) this.#kept.delete(tenantId)
    })
    return made
  }

  async #read(db: Queryable, tenantId: number | null, now: Instant): Kept['found'] {
    const { shards } = this.#deps
    const asked = { tenantId, shards, until: now + MAX_AHEAD_MS + MINUTE_MS }
    const timers = await groupTimers(db, asked)
    return { timers, origins: await readOrigins(db, asked, timers) }
  }
}

/** In whole minutes; what has passed is no forecast. */
function minutesOf(request: ForecastRequest, now: Instant): { from: number; to: number } {
  const asked = readRange(request)
  const from = Math.max(asked.from, now)
  const to = asked.to === Number.POSITIVE_INFINITY ? Math.min(from + USUAL_MS, now + MAX_AHEAD_MS) : asked.to
  const refuse = (path: string, message: string) => refusal('invalid_argument', path, message, `${path} ${message}`)
  if (from >= now + MAX_AHEAD_MS) throw refuse('from', 'must lie within the coming 7 days')
  if (to <= from) throw refuse('to', request.from === undefined ? 'must lie in the future' : 'must be later than from')
  if (to > now + MAX_AHEAD_MS) throw refuse('to', 'must lie within the coming 7 days')
  return { from: Math.floor(from / MINUTE_MS), to: Math.ceil(to / MINUTE_MS) }
}
