import type { ParentRun } from '../wire.ts'
import type { LeasedRun, LogLevel } from './lease-calls.ts'
import type { AbortReason, Run } from './run.ts'
import { RunError } from './run-error.ts'
import { RunNotes } from './run-notes.ts'
import { type Verdict, verdicts } from './verdict.ts'

/** What a run may ask of its worker while it is being performed. */
export interface RunServices {
  /** The instant for a log line. */
  now(): number
  /** Sends the run's notes, and proves that its lease is live. */
  beat(run: RemoteRun): Promise<void>
  /** Sends the run's notes within a moment. */
  noted(run: RemoteRun): void
}

/** The slots that perform it. */
export interface RunHome {
  /** Ends of its runs that the server has not heard of yet. */
  unsent: number
  giveUp(run: RemoteRun, reason: AbortReason): void
  fill(): void
  takeOverdue(): RemoteRun[]
}

/** One call of a handler: its slot is free when none of its runs is at work any more. */
export interface Group {
  left: number
}

/**
 * One leased attempt, from its arrival until the server has heard how it ended. What costs anything (dates, the abort
 * signal, notes) is made when it is first asked for: most handlers of short work never do.
 */
export class RemoteRun implements Run {
  readonly leased: LeasedRun
  readonly token: string
  readonly home: RunHome
  readonly #services: RunServices
  #controller: AbortController | null = null
  #aborted: AbortReason | null = null
  #notes: RunNotes | null = null
  /** In the list of what its worker holds; -1: in none. */
  place = -1
  /** While its handler is at work. */
  group: Group | null = null
  /** On the board that the heartbeat thread reads. */
  boardSlot = -1
  /** The server's instant after which the lease may be another's. */
  leaseUntil: number
  /** When its time is up: it counts from the lease, and anew from its beginning. */
  deadlineAt: number
  /** By the worker's own clock: when the server was last known to hear of this lease. */
  beatAt: number
  /** By the worker's own clock. */
  readonly cameAt: number
  /** Its work is under way, or was: only what has not begun goes back as if it had never been here. */
  hasBegun = false
  /** By the worker's own clock: when it got its slot, and then when its work began; null while it waits for a slot. */
  startedAt: number | null = null
  /** What became of it: `ended` runs are still held, until the server has heard of it. */
  state: 'waiting' | 'active' | 'ended' | 'over' = 'waiting'
  /** Goes with a heartbeat call that is under way or planned. */
  beating = false

  constructor(leased: LeasedRun, home: RunHome, services: RunServices, monotonicMs: number) {
    this.leased = leased
    this.token = leased.token
    this.home = home
    this.#services = services
    this.leaseUntil = leaseUntilOf(leased.leaseUntil)
    this.deadlineAt = deadlineOf(leased.deadline)
    this.beatAt = monotonicMs
    this.cameAt = monotonicMs
  }

  get id(): string {
    return this.leased.runId
  }
  get jobId(): string {
    return this.leased.jobId
  }
  get nominalAt(): Date {
    return new Date(this.leased.nominalAt)
  }
  get attempt(): number {
    return this.leased.attempt
  }
  get failures(): number {
    return this.leased.failures
  }
  get deadline(): Date {
    return new Date(this.deadlineAt)
  }
  get payload(): unknown {
    return this.leased.payload
  }
  get payloadRef(): string | undefined {
    return this.leased.payloadRef
  }
  get labels(): Readonly<Record<string, string>> {
    return this.leased.labels ?? {}
  }
  /** The server must hear that the work begins, before it does. */
  get mustBeSaid(): boolean {
    return this.leased.begin === true
  }
  get atMostOnce(): boolean {
    return this.leased.atMostOnce === true
  }
  /** The handler has ended, or nobody waits for it any more. */
  get isDone(): boolean {
    return this.state === 'ended' || this.state === 'over'
  }

  /** Its timeout counts from here. */
  begin(monotonicMs: number, now: number): void {
    this.startedAt = monotonicMs
    this.hasBegun = true
    this.deadlineAt = now + this.leased.timeoutMs
  }

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
  }

  /** Something it noted is not stored yet, for all that is known. */
  get hasOpenNotes(): boolean {
    return this.#notes !== null && (this.#notes.isPending || this.beating)
  }

  /** What is noted and not sent yet. */
  get unsentNotes(): RunNotes | null {
    return this.#notes?.isPending ? this.#notes : null
  }

  heartbeat(): Promise<void> {
    return this.#beat()
  }

  checkpoint(): Promise<unknown>
  checkpoint(value: unknown): Promise<void>
  async checkpoint(...value: [unknown?]): Promise<unknown> {
    if (value.length === 0) return this.#notes?.hasCheckpoint ? this.#notes.checkpoint : this.leased.checkpoint
    this.#ownNotes().leaveCheckpoint(value[0])
    return this.#beat()
  }

  async parents(): Promise<ParentRun[]> {
    return this.leased.parents ?? []
  }

  async progress(value: number, text?: string): Promise<void> {
    this.#ownNotes().setProgress(value, text)
    return this.#beat()
  }

  log(message: string, level: LogLevel = 'info'): void {
    if (this.isDone) return
    if (this.#ownNotes().addLine(message, level, this.#services.now())) this.#services.noted(this)
  }

  retryIn(delay: string, reason?: string): Verdict {
    return verdicts.retryIn(delay, reason)
  }
  fail(reason?: string): Verdict {
    return verdicts.fail(reason)
  }
  cancel(reason?: string): Verdict {
    return verdicts.cancel(reason)
  }
  snooze(delay: string): Verdict {
    return verdicts.snooze(delay)
  }

  leaseLost(): RunError {
    return new RunError('lease_lost', `the lease of run ${this.id}, attempt ${this.attempt}, is no longer live`)
  }

  #ownNotes(): RunNotes {
    this.#notes ??= new RunNotes()
    return this.#notes
  }

  #beat(): Promise<void> {
    if (this.isDone || this.#aborted === 'lease_lost') return Promise.reject(this.leaseLost())
    return this.#services.beat(this)
  }
}

/** The runs of one answer mostly share their instants: reading one costs more than comparing two texts. */
function instantReader(): (text: string) => number {
  let last = { text: '', ms: 0 }
  return (text) => {
    if (text !== last.text) last = { text, ms: Date.parse(text) }
    return last.ms
  }
}
const leaseUntilOf = instantReader()
const deadlineOf = instantReader()
