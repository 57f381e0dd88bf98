import type { ParentRun } from '../../dependencies/parent-runs.sql.ts'
import type { Definition } from '../../job/definition.ts'
import { runIdOf } from '../../job/ids.ts'
import type { LogLevel } from '../../leases/attempt-logs.sql.ts'
import type { Lease } from '../../leases/lease.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { CallerTransaction } from '../../store/database.ts'
import type { Progress } from '../left-behind.ts'
import { verdicts } from './verdict.ts'

/** What the run may ask of the engine while it is being performed. */
export interface RunServices {
  now(): Instant
  renew(run: ActiveRun): Promise<void>
  readCheckpoint(run: ActiveRun): Promise<unknown>
  saveCheckpoint(run: ActiveRun, value: unknown): Promise<void>
  saveProgress(run: ActiveRun, progress: Progress): Promise<void>
  log(run: ActiveRun, level: LogLevel, message: string): void
  completeIn(run: ActiveRun, tx: CallerTransaction, result: unknown): Promise<void>
  readParents(run: ActiveRun): Promise<ParentRun[]>
}

export type AbortReason = 'canceled' | 'timeout' | 'lease_lost' | 'stopping'

/**
 * One attempt as its handler sees it. What costs anything (parsing the definition, the abort signal) is made when it is
 * first asked for: most handlers of short work never do.
 */
export class ActiveRun {
  readonly lease: Lease
  readonly #services: RunServices
  #definition: Definition | null = null
  #controller: AbortController | null = null
  #aborted: AbortReason | null = null
  /** For whoever performs many short runs: an abort signal for each would cost more than the run. */
  onAbort: (() => void) | null = null
  /** When it got its slot, and then when its work began. */
  startedAt: Instant
  /** It may have done something. */
  hasBegun = false
  /** In the list of its pool. */
  place = -1
  /** The handler completes the run in its own transaction: heartbeats stop. */
  completesItself = false
  checkpointed = false
  /** Settled, or given up: what the handler still does is nobody's business. */
  over = false

  constructor(lease: Lease, services: RunServices, now: Instant) {
    this.lease = lease
    this.#services = services
    this.startedAt = now
  }

  /** It waits for nothing more here: its timeout counts from now. */
  start(at: Instant): void {
    this.startedAt = at
    this.lease.deadline = at + this.lease.timeoutMs
  }

  /** Its work begins, unless it was given up or that could not be said (null). */
  begin(at: Instant | null): boolean {
    this.hasBegun = at !== null && !this.over && this.#aborted === null
    return this.hasBegun
  }

  get id(): string {
    return runIdOf(this.lease.jobId, this.lease.nominalAt)
  }
  get jobId(): string {
    return this.lease.jobId
  }
  get nominalAt(): Date {
    return new Date(this.lease.nominalAt)
  }
  get attempt(): number {
    return this.lease.attempt
  }
  /** Failed attempts so far. */
  get failures(): number {
    return this.lease.failures
  }
  get deadline(): Date {
    return new Date(this.lease.deadline)
  }
  get definition(): Definition {
    this.#definition ??= JSON.parse(this.lease.definition ?? '{"queue":"default"}') as Definition
    return this.#definition
  }
  get payload(): unknown {
    return this.definition.payload
  }
  get payloadRef(): string | undefined {
    return this.definition.payloadRef
  }
  get labels(): Readonly<Record<string, string>> {
    return this.definition.labels ?? {}
  }

  /** Aborted when the run is canceled, its time is up, its lease is lost, or the node stops and will not wait longer. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#aborted)
    }
    return this.#controller.signal
  }

  get aborted(): AbortReason | null {
    return this.#aborted
  }

  abort(reason: AbortReason): void {
    if (this.#aborted) return
    this.#aborted = reason
    this.#controller?.abort(reason)
    this.onAbort?.()
  }

  /** Proves that the lease is still live, and extends it. Throws `lease_lost` if it is not. */
  heartbeat(): Promise<void> {
    return this.#services.renew(this)
  }

  /** Without a value: what an earlier attempt (or this one) left. With one: leaves it for the next attempt. */
  checkpoint(): Promise<unknown>
  checkpoint(value: unknown): Promise<void>
  checkpoint(...value: [unknown?]): Promise<unknown> {
    return value.length === 0 ? this.#services.readCheckpoint(this) : this.#services.saveCheckpoint(this, value[0])
  }

  /** How far it is, from 0 to 1, for whoever looks at the run. */
  progress(value: number, text?: string): Promise<void> {
    return this.#services.saveProgress(this, { value, ...(text === undefined ? {} : { text }) })
  }

  /** The jobs that this one waited for, how they ended and what they left; none for a job that waits for nobody. */
  parents(): Promise<ParentRun[]> {
    return this.#services.readParents(this)
  }

  /** A line in the attempt's log. */
  log(message: string, level: LogLevel = 'info'): void {
    this.#services.log(this, level, message)
  }

  /** Finishes the run inside the handler's own transaction: both commit, or neither does. */
  completeIn(tx: CallerTransaction, result?: unknown): Promise<void> {
    return this.#services.completeIn(this, tx, result)
  }

  readonly retryIn = verdicts.retryIn
  readonly fail = verdicts.fail
  readonly cancel = verdicts.cancel
  readonly snooze = verdicts.snooze
}
