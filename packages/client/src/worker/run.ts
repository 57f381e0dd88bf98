import type { ParentRun } from '../wire.ts'
import type { LogLevel } from './lease-calls.ts'
import type { Verdict } from './verdict.ts'

/** Why `run.signal` is aborted: its `reason`. */
export type AbortReason = 'canceled' | 'timeout' | 'lease_lost' | 'stopping'

/** One attempt as its handler sees it. Handlers written against this run in a worker and inside the library alike. */
export interface Run {
  /** The run's id, the same for all its attempts: the key under which its effects are made once. */
  readonly id: string
  readonly jobId: string
  /** The instant the run was meant for. */
  readonly nominalAt: Date
  /** From 1; rises with every lease. */
  readonly attempt: number
  /** Failed attempts so far. */
  readonly failures: number
  /** When this attempt times out. */
  readonly deadline: Date
  readonly payload: unknown
  readonly payloadRef: string | undefined
  readonly labels: Readonly<Record<string, string>>
  /** Aborted when the run is canceled, its time is up, its lease is lost, or the worker stops and will not wait longer. */
  readonly signal: AbortSignal
  /** Proves that the lease is still live, and extends it. Throws `lease_lost` if it is not. */
  heartbeat(): Promise<void>
  /** Without a value: what an earlier attempt (or this one) left. With one: leaves it for the next attempt. */
  checkpoint(): Promise<unknown>
  checkpoint(value: unknown): Promise<void>
  /** The jobs that this one waited for, how they ended and what they left; none for a job that waits for nobody. */
  parents(): Promise<ParentRun[]>
  /** How far the attempt is, from 0 to 1. */
  progress(value: number, text?: string): Promise<void>
  /** A line in the attempt's log. */
  log(message: string, level?: LogLevel): void
  retryIn(delay: string, reason?: string): Verdict
  fail(reason?: string): Verdict
  cancel(reason?: string): Verdict
  snooze(delay: string): Verdict
}
