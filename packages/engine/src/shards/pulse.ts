import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Vital } from '../store/database.ts'
import { isFault } from '../store/database-errors.ts'
import { type SchemaVersion, schemaVersion } from '../store/schema-state.sql.ts'
import { shardsOwnedBy } from './owners.ts'
import { forgetNodes, grantGrace, leave, type PulseAnswer, sendPulse } from './pulse.sql.ts'
import { bitsOfRoles, type Role } from './roles.ts'

/** Of what the pulse asked. */
export interface Asked {
  shards: number[]
  queueIds: number[]
  servedQueueIds: number[]
}

export interface PulseDeps {
  db: Vital
  clock: Clock
  logger: Logger
  node: { id: string; shard: number; roles: readonly Role[] }
  /** Where this node is reached, for people who look at the fleet. */
  address(): string | null
  shards: number
  /** Below this a shard's timers have been read. */
  timersReadUntil(shard: number): Instant
  queueIds(): number[]
  beforeAsking(): void
  /** What this node tells the others of whose turn it is. */
  charges(): unknown
  onOwners(shards: number[]): void
  onAnswer(answer: PulseAnswer, asked: Asked): void
  /** Told with each pulse, and also when a newer schema refuses the pulse itself. */
  onSchema(found: SchemaVersion): void
}

const PULSE_MS = 1_000
/** So soon a node asks again whose clock did not agree with the database's. */
const DOUBT_MS = 20
/** Who pulsed within this is live (the statement says so too); a node about to fall silent is looked at right then. */
const LIVE_MS = 2_500
/** Nobody pulsed for this long: the database was away, and holders get time to renew before anything is reaped. */
const OUTAGE_MS = 3_000
const GRACE_MS = 10_000
/** A sweep without watermarks costs at most a twentieth of the time. */
const SWEEP_SHARE = 20
/** A pulse that took long because the database was away, or this process stopped, says nothing about what a sweep costs. */
const LONGEST_WITHOUT_SWEEP_MS = 10_000
const FORGET_AFTER_MS = 60_000

/** The node's heart: says that it lives, learns who else does and what there is to do. */
export class Pulse implements Step {
  readonly name = 'pulse'
  readonly #deps: PulseDeps
  readonly #startedAt: Instant
  #owned: number[] = []
  #live = ''
  #nextSweepAt = Number.NEGATIVE_INFINITY
  #forgotAt: Instant
  /** When the database last answered a pulse of this node. */
  #answeredAt = Number.NEGATIVE_INFINITY
  #waiting: (() => void)[] = []

  constructor(deps: PulseDeps) {
    this.#deps = deps
    this.#startedAt = deps.clock.now()
    this.#forgotAt = this.#startedAt
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const waiting = this.#waiting
    this.#waiting = []
    try {
      return await this.#pulse()
    } finally {
      for (const go of waiting) go()
    }
  }

  async #pulse(): Promise<{ waitMs: number }> {
    const { db, clock, node } = this.#deps
    const before = clock.now()
    const sweeps = before >= this.#nextSweepAt
    const shards = this.#owned
    const roles = this.#roles
    const servedQueueIds = this.#deps.queueIds()
    const queueIds = sweeps ? servedQueueIds : []
    this.#deps.beforeAsking()
    const answer = await sendPulse(db, {
      nodeShard: node.shard,
      nodeId: node.id,
      roles: bitsOfRoles(roles),
      address: this.#deps.address(),
      startedAt: this.#startedAt,
      shards,
      timersAfter: shards.map((shard) => (sweeps ? Number.NEGATIVE_INFINITY : this.#deps.timersReadUntil(shard))),
      queueIds,
      servedQueueIds,
      charges: this.#deps.charges(),
    }).catch(async (error: unknown) => {
      if (isFault(error)) this.#deps.onSchema(await schemaVersion(db))
      throw error
    })
    this.#deps.onSchema(answer.schema)
    const tookMs = Math.max(0, clock.now() - before)
    if (sweeps)
      this.#nextSweepAt = before + Math.min(Math.max(PULSE_MS / 2, SWEEP_SHARE * tookMs), LONGEST_WITHOUT_SWEEP_MS)
    clock.observe(answer.now, tookMs)
    const { now } = answer
    await this.#afterOutage(answer, now)
    this.#reown(answer)
    // After an outage another node may have pulsed before and be about to grant the grace: this pulse may not know of it yet.
    const isBack = before - this.#answeredAt > OUTAGE_MS
    this.#answeredAt = clock.now()
    this.#deps.onAnswer(
      { ...answer, now, hasExpired: answer.hasExpired && !isBack },
      { shards, queueIds, servedQueueIds },
    )
    await this.#forget(now)
    const nextDeathMs = answer.oldestPulseAt === null ? PULSE_MS : answer.oldestPulseAt + LIVE_MS + 1 - answer.now
    // What the others were told of its roles is not so any more, or will not be.
    if (!clock.isTrusted || roles.length !== this.#roles.length) return { waitMs: DOUBT_MS }
    return { waitMs: Math.max(1, Math.min(PULSE_MS, nextDeathMs) - tookMs) }
  }

  /** The next pulse looks without watermarks: a queue has just been given a handler that knows of nothing yet. */
  sweepNext(): void {
    this.#nextSweepAt = Number.NEGATIVE_INFINITY
  }

  /** Until this node knows what is committed now, by a pulse that has not begun yet. A pulse that fails ends the wait, too. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  async leave(): Promise<void> {
    for (const go of this.#waiting) go()
    await leave(this.#deps.db, this.#deps.node)
  }

  async #afterOutage(answer: PulseAnswer, now: Instant): Promise<void> {
    if (answer.lastPulseAt === null || now - answer.lastPulseAt <= OUTAGE_MS) return
    answer.graceUntil = now + GRACE_MS
    await grantGrace(this.#deps.db, answer.graceUntil)
    this.#deps.logger.warn('no node pulsed for a while: leases get grace before they are reaped', {
      silentMs: now - answer.lastPulseAt,
    })
  }

  /** A node that cannot trust its clock promotes nothing, and tells the others so. */
  get #roles(): readonly Role[] {
    const { node, clock } = this.#deps
    return clock.isTrusted ? node.roles : node.roles.filter((role) => role !== 'promoter')
  }

  #reown(answer: PulseAnswer): void {
    const { node, shards, onOwners, logger } = this.#deps
    const promotes = this.#roles.includes('promoter')
    // The first pulse writes the node's row and does not see it yet.
    const promoters = promotes ? [...new Set([...answer.promoters, node.id])].sort() : answer.promoters
    const live = promotes ? promoters.join() : 'off'
    if (live === this.#live) return
    this.#live = live
    this.#owned = live === 'off' ? [] : shardsOwnedBy(node.id, promoters, shards)
    logger.debug('the nodes that promote changed', { promoters: promoters.length, owned: this.#owned.length })
    onOwners(this.#owned)
  }

  async #forget(now: Instant): Promise<void> {
    if (now - this.#forgotAt < FORGET_AFTER_MS) return
    this.#forgotAt = now
    await forgetNodes(
      this.#deps.db,
      Array.from({ length: this.#deps.shards }, (_, shard) => shard),
      now - FORGET_AFTER_MS,
    )
  }
}
