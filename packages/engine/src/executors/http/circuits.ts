import { bringForward } from '../../attempts/bring-forward.sql.ts'
import { gateKeyOf } from '../../job/gate-key.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Step } from '../../runtime/loop.ts'
import type { Random } from '../../runtime/random.ts'
import type { Wakeups } from '../../shards/wakeups.sql.ts'
import type { Queryable } from '../../store/database.ts'
import { CIRCUITS, Circuit, type CircuitSettings, type Health, SLOWEST_RETURNS_PER_SECOND } from './circuit.ts'
import {
  circuitsOfTenant,
  closeCircuit,
  forgetCircuits,
  openCircuit,
  probeCircuit,
  readCircuit,
  readCircuits,
  reopenCircuit,
} from './circuit-store.sql.ts'

export interface CircuitView {
  origin: string
  /** `half_open`: one run has been let through to see whether the target is back. */
  state: 'open' | 'half_open'
  openedAt: Date
  /** When a run will be let through. */
  probeAt: Date
  /** Failed attempts when it opened, and failed probes since. */
  failures: number
  reason: string
}

/** What a run may do: call its target, call it as the one probe, or wait until an instant. */
export type Admittance = { kind: 'go' } | { kind: 'probe'; until: Instant } | { kind: 'wait'; until: Instant }

interface CircuitsDeps {
  db: Queryable
  wakeups: Wakeups
  clock: Clock
  random: Random
  logger: Logger
}

/** What other nodes opened or closed is known after this, as long as there are calls to make. */
const READ_EVERY_MS = 1_000
/** Older than this it is read anew before a call. */
const STALE_MS = 2_000
/** A probe's end is near: runs that come meanwhile look again soon. */
const LOOK_AGAIN_MS = 1_000
const IDLE_MS = 10_000
const FORGET_MS = 60_000
const KEEP_UNUSED_MS = 86_400_000
const MAX_TRIES = 5
/** Runs that come back at once when a circuit is closed by hand; the others come by themselves. */
const MAX_BROUGHT = 10_000
const GO: Admittance = { kind: 'go' }

/**
 * A circuit per tenant and origin. It opens when too many of this node's attempts fail, which all nodes learn from the table
 * within a second; no notification is needed. While it is open, runs wait instead of burning attempts, in a line that comes
 * back no faster than calls were made before. When its time is up one run of all nodes, chosen by a compare-and-set, goes
 * through: it closes the circuit, or opens it again for twice as long. A node that dies with the probe holds it for a minute.
 */
export class Circuits implements Step {
  readonly name = 'circuits'
  readonly role = 'dispatcher'
  readonly #deps: CircuitsDeps
  readonly #settings: CircuitSettings
  readonly #circuits = new Map<string, Circuit>()
  #readAt: Instant = Number.NEGATIVE_INFINITY
  #usedAt: Instant = Number.NEGATIVE_INFINITY
  #forgotAt: Instant = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | null = null
  #changes = 0

  constructor(deps: CircuitsDeps, settings: CircuitSettings = CIRCUITS) {
    this.#deps = deps
    this.#settings = settings
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const now = this.#deps.clock.now()
    this.#forget(now)
    if (now - this.#usedAt <= IDLE_MS) await this.read()
    return { waitMs: READ_EVERY_MS }
  }

  of(key: string, tenantId: number, origin: string, now: Instant): Circuit {
    const circuit = this.#circuits.get(key) ?? this.#make(key, tenantId, origin)
    circuit.usedAt = now
    this.#usedAt = now
    return circuit
  }

  /** Nothing was called for a while, so nothing is known: to be read before a call. */
  isStale(now: Instant): boolean {
    return now - this.#readAt > STALE_MS
  }

  /** Writes what this node opened and reads what all did. Calls that ask meanwhile share its answer. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  /** For a circuit that is open. */
  async admit(circuit: Circuit, deadline: Instant): Promise<Admittance> {
    const { clock } = this.#deps
    for (let i = 0; i < MAX_TRIES; i++) {
      const now = clock.now()
      if (circuit.open === null) return GO
      const { probeAt, probing } = circuit.open
      if (now < probeAt) return this.#wait(circuit, probing ? Math.min(probeAt, now + LOOK_AGAIN_MS) : probeAt)
      if (circuit.asking) {
        await circuit.asking
        continue
      }
      const until = Math.max(now + 1, Math.min(deadline, now + this.#settings.probeMs))
      circuit.asking = this.#askToProbe(circuit, { now, until }).finally(() => {
        circuit.asking = null
      })
      if (await circuit.asking) return { kind: 'probe', until }
    }
    return this.#wait(circuit, clock.now() + LOOK_AGAIN_MS)
  }

  /** What an attempt says about its target, which began when the circuit had this generation. */
  record(circuit: Circuit, generation: number, health: Health, reason: string): void {
    if (health === null || circuit.generation !== generation || circuit.open !== null) return
    const { clock, logger } = this.#deps
    const now = clock.now()
    if (!circuit.count(health, now, this.#settings)) return
    const { openMs, windowMs } = this.#settings
    const { failures } = circuit
    circuit.setOpen({ openedAt: now, probeAt: now + openMs, openMs, failures, probing: false, reason }, windowMs)
    circuit.isUnwritten = true
    circuit.lastChange = ++this.#changes
    logger.warn('a circuit opened', { tenantId: circuit.tenantId, origin: circuit.origin, failures, reason })
    void this.#write(circuit)
  }

  /** The one run that was let through has ended. */
  async recordProbe(circuit: Circuit, probe: { until: Instant }, health: Health, reason: string): Promise<void> {
    const { db, clock, logger } = this.#deps
    const now = clock.now()
    const before = circuit.open
    circuit.lastChange = ++this.#changes
    try {
      if (health === 'well') {
        circuit.setClosed()
        await closeCircuit(db, circuit)
        logger.info('a circuit closed', { tenantId: circuit.tenantId, origin: circuit.origin })
        return
      }
      const { openMs: firstMs, longestOpenMs } = this.#settings
      const openMs = before?.openMs ?? firstMs
      const again =
        health === null
          ? { probeAt: now, openMs, failures: 0, reason: null }
          : { probeAt: 0, openMs: Math.min(openMs * 2, longestOpenMs), failures: 1, reason }
      if (health === 'ill') again.probeAt = now + again.openMs
      if (before) {
        const failures = before.failures + again.failures
        circuit.open = { ...before, ...again, failures, reason: again.reason ?? before.reason, probing: false }
      }
      await reopenCircuit(db, circuit, probe, again)
    } catch (error) {
      // The next read tells what the table has; at worst the probe's time runs out.
      logger.warn('the end of a probe was not written', { origin: circuit.origin, error })
    }
  }

  async list(tenantId: number): Promise<CircuitView[]> {
    return (await circuitsOfTenant(this.#deps.db, tenantId)).map((row) => ({
      origin: row.origin,
      state: row.probing ? 'half_open' : 'open',
      openedAt: new Date(row.openedAt),
      probeAt: new Date(row.probeAt),
      failures: row.failures,
      reason: row.reason,
    }))
  }

  /**
   * Closes it by hand, as if a probe had gone well; false if it was closed. What waits for it comes back from now on, one
   * after the other. Other nodes know within a second.
   */
  async reset(tenantId: number, origin: string): Promise<boolean> {
    const { db, clock, wakeups } = this.#deps
    const circuit = this.#circuits.get(circuitKey(tenantId, origin))
    await circuit?.writing
    const wasOpen = await closeCircuit(db, { tenantId, origin })
    const spacingMs = 1_000 / (circuit?.returnsPerSecond ?? SLOWEST_RETURNS_PER_SECOND)
    if (circuit) {
      circuit.lastChange = ++this.#changes
      circuit.setClosed()
    }
    if (!wasOpen) return false
    const now = clock.now()
    const back = { dueAfter: now, from: now, spacingMs, limit: MAX_BROUGHT }
    for (const { shard, dueAt } of await bringForward(db, [gateKeyOf('circuit', tenantId, origin)], back))
      wakeups.waiting(shard, dueAt)
    return true
  }

  /** Removes circuits whose origins were not called for a day; answers how many. */
  purge(now: Instant): Promise<number> {
    return forgetCircuits(this.#deps.db, now - KEEP_UNUSED_MS)
  }

  #make(key: string, tenantId: number, origin: string): Circuit {
    const circuit = new Circuit(tenantId, origin, this.#settings)
    this.#circuits.set(key, circuit)
    return circuit
  }

  #wait(circuit: Circuit, notBefore: Instant): Admittance {
    return { kind: 'wait', until: circuit.line.next(notBefore, circuit.returnsPerSecond, this.#deps.random) }
  }

  async #askToProbe(circuit: Circuit, probe: { now: Instant; until: Instant }): Promise<boolean> {
    const { db, logger } = this.#deps
    try {
      if (circuit.isUnwritten) await this.#write(circuit)
      const mine = await probeCircuit(db, circuit, probe)
      circuit.lastChange = ++this.#changes
      if (mine) {
        if (circuit.open) circuit.open = { ...circuit.open, probeAt: probe.until, probing: true }
        return true
      }
      const row = await readCircuit(db, circuit)
      if (row) circuit.setOpen(row, this.#settings.windowMs)
      else circuit.setClosed()
    } catch (error) {
      logger.warn('a circuit cannot be probed yet', { origin: circuit.origin, error })
      if (circuit.open) circuit.open = { ...circuit.open, probeAt: probe.now + LOOK_AGAIN_MS }
    }
    return false
  }

  async #read(): Promise<void> {
    const { db, clock, logger } = this.#deps
    const now = clock.now()
    const before = this.#changes
    try {
      for (const circuit of this.#circuits.values()) if (circuit.isUnwritten) await this.#write(circuit)
      const rows = new Map((await readCircuits(db)).map((row) => [circuitKey(row.tenantId, row.origin), row]))
      this.#readAt = now
      for (const [key, row] of rows) {
        const circuit = this.#circuits.get(key) ?? this.#make(key, row.tenantId, row.origin)
        if (circuit.lastChange <= before && !circuit.isUnwritten) circuit.setOpen(row, this.#settings.windowMs)
      }
      for (const [key, circuit] of this.#circuits)
        if (circuit.open && !rows.has(key) && circuit.lastChange <= before && !circuit.isUnwritten) circuit.setClosed()
    } catch (error) {
      // Calls do not wait for the database: what is known counts until it is back.
      this.#readAt = now
      logger.debug('circuits cannot be read yet', { error })
    }
  }

  /** One at a time: of two, the later one could open again what was closed after the first. */
  #write(circuit: Circuit): Promise<void> {
    circuit.writing ??= this.#writeOpening(circuit).finally(() => {
      circuit.writing = null
    })
    return circuit.writing
  }

  async #writeOpening(circuit: Circuit): Promise<void> {
    if (!circuit.open) return
    try {
      await openCircuit(this.#deps.db, circuit, circuit.open)
      circuit.isUnwritten = false
      circuit.lastChange = ++this.#changes
    } catch (error) {
      this.#deps.logger.warn('a circuit that opened is not written yet', { origin: circuit.origin, error })
    }
  }

  #forget(now: Instant): void {
    if (now - this.#forgotAt < FORGET_MS) return
    this.#forgotAt = now
    for (const [key, circuit] of this.#circuits)
      if (!circuit.open && now - circuit.usedAt > FORGET_MS) this.#circuits.delete(key)
  }
}

/** Why a run waits, for people. */
export const openCircuitError = (origin: string): string => `the circuit of ${origin} is open`

export const circuitKey = (tenantId: number, origin: string): string => `${tenantId} ${origin}`
