import { randomBytes } from 'node:crypto'
import { Belfry, silentLogger } from '@belfry/engine'
import { startServer } from '@belfry/server'
import { inject, onTestFinished } from 'vitest'
import { BelfryClient, type JobInput, type Run } from '../src/index.ts'
import { type Logger, type QueueOptions, Worker, type WorkerOptions } from '../src/worker/index.ts'

export interface WorkerServer {
  readonly belfry: Belfry
  readonly url: string
  readonly client: BelfryClient
  readonly adminKey: string
  /** It goes, and `restart` brings it back at the same address with the same data. */
  stop(): Promise<void>
  restart(): Promise<void>
}

/** A node with its HTTP server, on a schema of its own. */
export async function startWorkerServer(): Promise<WorkerServer> {
  const schema = `worker_${randomBytes(6).toString('hex')}`
  const adminKey = `admin_${randomBytes(24).toString('hex')}`
  const start = async (port: number) => {
    const belfry = await Belfry.start({ database: inject('postgres'), schema, logger: silentLogger })
    const options = { belfry: () => belfry, adminKey, host: '127.0.0.1', port, logger: silentLogger }
    return { belfry, http: await startServer(options) }
  }
  let node = await start(0)
  const { port } = node.http
  const url = `http://127.0.0.1:${port}`
  return {
    get belfry() {
      return node.belfry
    },
    url,
    adminKey,
    client: new BelfryClient({ url, key: adminKey }),
    stop: async () => {
      await node.http.stop()
      await node.belfry.stop()
    },
    restart: async () => {
      node = await start(port)
    },
  }
}

export interface LoggedLine {
  level: string
  message: string
  fields: Record<string, unknown>
}

export function keepingLogger(): Logger & { lines: LoggedLine[] } {
  const lines: LoggedLine[] = []
  const at =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) => {
      lines.push({ level, message, fields })
    }
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

type OneQueue = QueueOptions & Partial<Omit<WorkerOptions, 'queues'>>

/** A worker of one queue that stops when its test is over. */
export function startWorker(client: BelfryClient, queue: string, options: OneQueue) {
  const { handler, concurrency, prefetch, batch, ...rest } = options
  const queueOptions = JSON.parse(JSON.stringify({ concurrency, prefetch, batch })) as object
  const logger = keepingLogger()
  const worker = new Worker({
    client,
    queues: { [queue]: { handler, ...queueOptions } as QueueOptions },
    handleSignals: false,
    graceMs: 1_000,
    logger,
    ...rest,
  })
  worker.start()
  onTestFinished(() => worker.stop())
  return { worker, logger }
}

/** The run of a one-off that is due now. */
export async function createRun(client: BelfryClient, input: JobInput): Promise<string> {
  const { jobId } = await client.jobs.create({ retry: { maxAttempts: 1 }, ...input })
  const [run] = (await client.jobs.runs(jobId)).items
  return (run as { id: string }).id
}

/** As it is when it has finished. */
export async function finished(client: BelfryClient, runId: string): Promise<Run> {
  for (;;) {
    const run = await client.runs.get(runId, { waitMs: 10_000 })
    if (run.finishedAt !== null) return run
  }
}

export interface Signal<Value> {
  promise: Promise<Value>
  resolve(value: Value): void
}

export function signal<Value = void>(): Signal<Value> {
  let settle: (value: Value) => void = () => {}
  const promise = new Promise<Value>((resolve) => {
    settle = resolve
  })
  return { promise, resolve: (value) => settle(value) }
}

/** Ends when the run is told to stop; answers why. */
export const aborted = ({ signal: one }: { signal: AbortSignal }): Promise<unknown> =>
  new Promise((resolve) => {
    if (one.aborted) resolve(one.reason)
    else one.addEventListener('abort', () => resolve(one.reason), { once: true })
  })
