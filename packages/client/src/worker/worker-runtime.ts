import { type Runtime, systemRuntime } from '../runtime/runtime.ts'

/** Leases are watched by a clock that nobody sets; the wall clock tells, beside it, that the machine was asleep. */
export interface WorkerRuntime extends Runtime {
  monotonicMs(): number
}

export const systemWorkerRuntime: WorkerRuntime = { ...systemRuntime, monotonicMs: () => performance.now() }
