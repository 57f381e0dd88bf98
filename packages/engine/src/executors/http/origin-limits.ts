import { bringForward, type Return } from '../../attempts/bring-forward.sql.ts'
import { limitedOrigins } from '../../concurrency/origin-limits.sql.ts'
import { type Limits, originLimitRef } from '../../concurrency/shared-limits.sql.ts'
import { gateKeyOf } from '../../job/gate-key.ts'
import type { Lease } from '../../leases/lease.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Step } from '../../runtime/loop.ts'
import { pause } from '../../runtime/pause.ts'
import type { Random } from '../../runtime/random.ts'
import type { Wakeups } from '../../shards/wakeups.sql.ts'
import type { Database } from '../../store/database.ts'
import { type Admitted, admitCalls } from './admit-calls.sql.ts'
import { LONGEST_AWAY_MS, ReturnLine } from './return-line.ts'
import { ReturnPace } from './return-pace.ts'

interface OriginLimitsDeps {
  db: Database
  clock: Clock
  random: Random
  logger: Logger
  wakeups: Wakeups
  shards: number
}

/** A call may be made, or its run has to wait. */
export type CallAdmission = true | { until: Instant; error: string; gateKey?: string }

interface Asking {
  lease: Lease
  tries: number
  settle(admission: CallAdmission): void
}

/** A limited origin that this node calls. */
class LimitedOrigin {
  asking: Asking[] = []
  isBusy = false
  readonly pace = new ReturnPace()
  readonly line = new ReturnLine()
  readonly tenantId: number
  readonly origin: string
  /** Runs that it puts aside because all slots are taken, and because of its rate: those have been given their exact times. */
  readonly gateKey: string
  readonly rateGateKey: string

  constructor(tenantId: number, origin: string) {
    this.tenantId = tenantId
    this.origin = origin
    this.gateKey = gateKeyOf('origin', tenantId, origin)
    this.rateGateKey = gateKeyOf('rate', tenantId, origin)
  }
}

/** What was limited elsewhere is known after this, as long as there are calls to make. */
const READ_EVERY_MS = 1_000
/** Older than this it is read anew before a call. */
const STALE_MS = 2_000
const IDLE_MS = 10_000
const MAX_BATCH = 500
const HELD_MS = 5
/** A row that another transaction holds is free again in a moment; a lost lease is found out by the end of the attempt. */
const MAX_TRIES = 5
/** All slots are taken: a first look. */
const FULL_MS = 500
const MAX_BROUGHT = 5_000
const SECOND_MS = 1_000
const TROUBLE_MS = 1_000
const MAX_ORIGINS = 10_000

/**
 * Limits of origins, by tenant: how many runs that call one may be leased at a time, and how many may start in a period, on
 * all nodes together. What is over the limit waits in a line that comes back one after the other, and sooner than it was told if
 * calls end sooner or the limit is changed. A node knows which origins are limited from the table, which it reads once a
 * second while it has calls to make.
 */
export class OriginLimits implements Step {
  readonly name = 'origin limits'
  readonly role = 'dispatcher'
  readonly #deps: OriginLimitsDeps
  readonly #tenants = new Map<number, { origins: ReadonlySet<string>; readAt: Instant; usedAt: Instant }>()
  readonly #origins = new Map<string, LimitedOrigin>()
  #reading: Promise<void> | null = null

  constructor(deps: OriginLimitsDeps) {
    this.#deps = deps
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const now = this.#deps.clock.now()
    for (const [tenantId, { usedAt }] of this.#tenants) if (now - usedAt > IDLE_MS) this.#tenants.delete(tenantId)
    if (this.#tenants.size > 0) await this.read()
    for (const limited of this.#origins.values()) {
      const wanted = limited.pace.wanted(now)
      if (wanted > 0) await this.#callBack(limited, wanted, now)
    }
    return { waitMs: READ_EVERY_MS }
  }

  /** The limit is another one now, or there is none: those it has put aside come back as fast as they may. */
  async changed(tenantId: number, origin: string, limits: Limits | null): Promise<void> {
    await this.read()
    const limited = this.#of(tenantId, origin)
    limited.line.clear()
    const { maxRunning = null, rate = null } = limits ?? {}
    const isPaced = maxRunning !== null && rate === null
    // The rest comes as slots get free.
    const limit = isPaced ? Math.min(MAX_BROUGHT, 2 * maxRunning) : MAX_BROUGHT
    const spacingMs = Math.max(1, rate === null ? 1 : rate.periodMs / rate.limit)
    const now = this.#deps.clock.now()
    for (let from = now, count = limit; count === limit && from < now + LONGEST_AWAY_MS; from += limit * spacingMs) {
      const gateKeys = [limited.gateKey, limited.rateGateKey]
      count = await this.#bringForward(gateKeys, { dueAfter: from, from, spacingMs, limit })
      if (isPaced) return
    }
  }

  /** Nothing is known of the tenant's limits, or nothing new: they are to be read before a call. */
  isStale(tenantId: number, now: Instant): boolean {
    const known = this.#tenants.get(tenantId)
    if (known === undefined) {
      this.#tenants.set(tenantId, { origins: new Set(), readAt: Number.NEGATIVE_INFINITY, usedAt: now })
      return true
    }
    known.usedAt = now
    return now - known.readAt > STALE_MS
  }

  isLimited(tenantId: number, origin: string): boolean {
    return this.#tenants.get(tenantId)?.origins.has(origin) ?? false
  }

  /** A call that asks while it is read shares the answer, unless it comes for a tenant that was not asked about. */
  async read(): Promise<void> {
    await this.#reading
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null
    })
    await this.#reading
  }

  /** Asks for a call to a limited origin. Calls that ask while others are being looked at share the next transaction. */
  admit(lease: Lease, origin: string): Promise<CallAdmission> {
    return new Promise((settle) => {
      const limited = this.#of(lease.tenantId, origin)
      limited.asking.push({ lease, tries: 0, settle })
      if (!limited.isBusy) void this.#serve(limited, lease.tenantId, origin)
    })
  }

  /** A call that was admitted is over. */
  ended(tenantId: number, origin: string): void {
    this.#of(tenantId, origin).pace.ended()
  }

  async #callBack(limited: LimitedOrigin, wanted: number, now: Instant): Promise<void> {
    const { origin, pace, line, gateKey } = limited
    try {
      const back = { dueAfter: now + SECOND_MS, from: now, spacingMs: SECOND_MS / wanted, limit: wanted }
      const count = await this.#bringForward([gateKey], back)
      pace.found(count, now)
      if (count < wanted) line.clear()
    } catch (error) {
      this.#deps.logger.debug('runs that wait for an origin cannot be looked at yet', { origin, error })
    }
  }

  async #bringForward(gateKeys: readonly string[], back: Return): Promise<number> {
    const { db, wakeups } = this.#deps
    const brought = await bringForward(db, gateKeys, back)
    for (const { shard, dueAt } of brought) wakeups.waiting(shard, dueAt)
    return brought.length
  }

  async #serve(limited: LimitedOrigin, tenantId: number, origin: string): Promise<void> {
    const { clock, logger } = this.#deps
    limited.isBusy = true
    try {
      while (limited.asking.length > 0) {
        const batch = limited.asking.splice(0, MAX_BATCH)
        try {
          await this.#serveBatch(limited, batch, tenantId, origin)
        } catch (error) {
          logger.warn('the limit of an origin cannot be looked at yet', { origin, error })
          const until = clock.now() + TROUBLE_MS
          for (const { settle } of batch) settle({ until, error: `the limit of ${origin} could not be looked at` })
        }
      }
    } finally {
      limited.isBusy = false
    }
  }

  async #serveBatch(limited: LimitedOrigin, batch: Asking[], tenantId: number, origin: string): Promise<void> {
    const { db, clock, shards } = this.#deps
    const found = await admitCalls(db, originLimitRef(tenantId, origin, shards), batch, clock.now())
    if (found === 'held') {
      limited.asking.unshift(...batch)
      await pause(HELD_MS)
      return
    }
    if (found === 'none') {
      for (const { settle } of batch) settle(true)
      return
    }
    for (const { settle } of found.admitted) settle(true)
    for (const asking of found.again) this.#askAgain(limited, asking)
    found.turnedAway.forEach(({ settle }, i) => {
      settle(this.#away(limited, origin, found.shortage, i))
    })
  }

  #askAgain(limited: LimitedOrigin, asking: Asking): void {
    if (++asking.tries < MAX_TRIES) limited.asking.push(asking)
    else asking.settle({ until: this.#deps.clock.now() + FULL_MS, error: 'its row was held by another transaction' })
  }

  #away(limited: LimitedOrigin, origin: string, shortage: Admitted<Asking>['shortage'], place: number): CallAdmission {
    const { clock, random } = this.#deps
    const now = clock.now()
    if (shortage?.of === 'rate') {
      const waitMs = Math.ceil((shortage.times[place] ?? now) - now)
      const isTooLong = waitMs > LONGEST_AWAY_MS
      const until = now + (isTooLong ? Math.round(LONGEST_AWAY_MS * (0.5 + random.float() / 2)) : Math.max(1, waitMs))
      return { until, error: rateError(origin), gateKey: limited.rateGateKey }
    }
    limited.pace.sentAway(now)
    const until = limited.line.next(now + FULL_MS, limited.pace.perSecond, random)
    return { until, error: slotsError(origin, shortage?.limit ?? 0), gateKey: limited.gateKey }
  }

  async #read(): Promise<void> {
    const { db, clock, logger } = this.#deps
    const now = clock.now()
    const tenantIds = [...this.#tenants.keys()]
    try {
      for (const [tenantId, origins] of await limitedOrigins(db, tenantIds)) {
        const known = this.#tenants.get(tenantId)
        if (known) this.#tenants.set(tenantId, { ...known, origins, readAt: now })
      }
    } catch (error) {
      // Calls do not wait for the database: what is known counts until it is back.
      for (const tenantId of tenantIds) {
        const known = this.#tenants.get(tenantId)
        if (known) known.readAt = now
      }
      logger.debug('limits of origins cannot be read yet', { error })
    }
  }

  #of(tenantId: number, origin: string): LimitedOrigin {
    const key = `${tenantId} ${origin}`
    let limited = this.#origins.get(key)
    if (limited === undefined) {
      if (this.#origins.size >= MAX_ORIGINS)
        for (const [other, { isBusy }] of this.#origins) if (!isBusy) this.#origins.delete(other)
      limited = new LimitedOrigin(tenantId, origin)
      this.#origins.set(key, limited)
    }
    return limited
  }
}

/** Why a run waits, for people. */
const slotsError = (origin: string, limit: number): string =>
  `${origin} is limited to ${limit} ${limit === 1 ? 'run' : 'runs'} at a time, and so many are under way`
const rateError = (origin: string): string => `the rate limit of ${origin} is used up`
