import { type BatchHandler, inBatches } from './batch-handler.ts'
import type { WorkerClient } from './lease-calls.ts'
import type { Logger } from './logger.ts'
import { oneByOne, type RunHandler } from './perform.ts'
import type { Run } from './run.ts'
import type { SlotsOptions } from './slots.ts'
import type { WorkerRuntime } from './worker-runtime.ts'

interface AnyQueueOptions {
  /** How many calls of the handler are under way at most; 10. */
  concurrency?: number
  /** How many runs are leased ahead of free slots; as many as were lately performed in 200 ms unless given, 0 for none. */
  prefetch?: number
}

export interface SingleQueueOptions extends AnyQueueOptions {
  handler: RunHandler
  batch?: undefined
}

export interface BatchQueueOptions extends AnyQueueOptions {
  handler: BatchHandler
  /** Up to `size` runs (1–1,000) in one call, which waits for at most `waitMs` (0) until there are so many. */
  batch: { size: number; waitMs?: number }
}

export type QueueOptions = SingleQueueOptions | BatchQueueOptions

export interface WorkerOptions {
  client: WorkerClient
  queues: Record<string, QueueOptions>
  /** Unique per start; host, process and chance unless given. */
  id?: string
  /** How long a lease lives without a heartbeat, 1,000–3,600,000; 30,000. So late is a dead worker noticed. */
  leaseMs?: number
  /** How long `stop` waits for handlers that are at work; 10,000. */
  graceMs?: number
  version?: string
  labels?: Record<string, string>
  logger?: Logger
  /** SIGTERM and SIGINT stop the worker; true where there are such signals. */
  handleSignals?: boolean
  /** A lease was lost: what its handler did may be done again by another attempt. */
  onLeaseLost?: (run: Run) => void
  /** For tests. */
  runtime?: WorkerRuntime
}

export const OPTION_NAMES = [
  'client',
  'queues',
  'id',
  'leaseMs',
  'graceMs',
  'version',
  'labels',
  'logger',
  'handleSignals',
  'onLeaseLost',
  'runtime',
]
export const QUEUE_OPTION_NAMES = ['handler', 'concurrency', 'prefetch', 'batch']
const BATCH_OPTION_NAMES = ['size', 'waitMs']

export const LEASE_MS = 30_000
export const GRACE_MS = 10_000
const CONCURRENCY = 10

/** Throws what is wrong with the options: a worker that starts has none of it. */
export function checkOptions(options: WorkerOptions): void {
  checkNames(options, OPTION_NAMES, '')
  if (!options.client?.leases) throw new TypeError('client must be a BelfryClient')
  if (Object.keys(options.queues ?? {}).length === 0) throw new TypeError('queues must name at least one queue')
  if (options.id !== undefined && !/^[\w.:-]{1,128}$/.test(options.id)) {
    throw new TypeError('id must be 1 to 128 letters, digits, or one of . _ : -')
  }
  checkNumber('leaseMs', options.leaseMs, 1_000, 3_600_000)
  checkNumber('graceMs', options.graceMs, 0, 86_400_000)
  for (const [queue, one] of Object.entries(options.queues)) {
    checkNames(one, QUEUE_OPTION_NAMES, `queues.${queue}.`)
    if (typeof one.handler !== 'function') throw new TypeError(`queues.${queue}.handler must be a function`)
    checkNumber(`queues.${queue}.concurrency`, one.concurrency, 1, 100_000)
    checkNumber(`queues.${queue}.prefetch`, one.prefetch, 0, 100_000)
    if (one.batch === undefined) continue
    checkNames(one.batch, BATCH_OPTION_NAMES, `queues.${queue}.batch.`)
    if (one.batch.size === undefined) throw new TypeError(`queues.${queue}.batch.size is missing`)
    checkNumber(`queues.${queue}.batch.size`, one.batch.size, 1, 1_000)
    checkNumber(`queues.${queue}.batch.waitMs`, one.batch.waitMs, 0, 60_000)
  }
}

export function slotsOptions(options: QueueOptions): SlotsOptions {
  const { concurrency = CONCURRENCY, prefetch } = options
  const slots = options.batch
    ? { perform: inBatches(options.handler), size: options.batch.size, waitMs: options.batch.waitMs ?? 0 }
    : { perform: oneByOne(options.handler), size: 1, waitMs: 0 }
  return { ...slots, concurrency, ...(prefetch === undefined ? {} : { prefetch }) }
}

function checkNumber(name: string, value: number | undefined, min: number, max: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return
  throw new RangeError(`${name} must be a whole number from ${min} to ${max}`)
}

function checkNames(given: object, names: string[], path: string): void {
  for (const name of Object.keys(given ?? {})) {
    if (names.includes(name)) continue
    throw new TypeError(
      `${path}${name} is not an option; there are ${names.filter((one) => one !== 'runtime').join(', ')}`,
    )
  }
}
