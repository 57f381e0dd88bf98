import cluster, { type Worker } from 'node:cluster'
import { type Clock, type EmbeddedServer, type Logger, SystemClock, startEmbedded } from '@belfry/engine'
import { DRAIN_MS } from './engine-options.ts'
import { closeConnectionsLeftBy } from './handed-connections.ts'
import { isFromProcess, type ToProcess } from './messages.ts'
import type { Running } from './node.ts'
import { choosePort } from './port.ts'
import { RestartPause } from './restart-pause.ts'
import { StartFailure } from './start-failure.ts'
import type { StartOptions } from './start-options.ts'

/** Beyond the drain: for requests under way, and for what has ended to be written. */
const GRACE_MS = DRAIN_MS + 8_000

/**
 * Several processes behind one port. The first holds the port, the signals and the embedded database, and performs
 * nothing itself; each of the others is a node.
 *
 * One that dies is started again, after a pause that grows; what it had leased is tried again elsewhere when its leases
 * expire. If the first dies, the others notice that they are alone, drain and end: nobody would start them again, and
 * nobody hands them connections.
 */
export async function startProcesses(options: StartOptions, logger: Logger): Promise<Running> {
  const port = await choosePort(options.port)
  const embedded = options.database === undefined ? await startEmbedded({ dataDir: options.dataDir, logger }) : null
  const processes = new Processes({ count: options.processes, port, logger, embedded })
  try {
    await processes.start()
  } catch (error) {
    await processes.stop()
    throw error
  }
  const { ended } = processes
  return { url: `http://127.0.0.1:${port}`, ended, stop: () => processes.stop(), end: () => processes.end() }
}

interface ProcessesOptions {
  count: number
  port: number
  logger: Logger
  embedded: EmbeddedServer | null
}

class Processes {
  /** One that ended by itself ends all: what it met the others meet too. */
  readonly ended: Promise<Error>
  readonly #options: ProcessesOptions
  readonly #clock: Clock = new SystemClock()
  readonly #slots: Slot[]
  #stopped: Promise<void> | undefined
  #ending = false

  constructor(options: ProcessesOptions) {
    this.#options = options
    this.#slots = Array.from({ length: options.count }, (_, index) => new Slot(index + 1, options, this.#clock))
    this.ended = Promise.race(this.#slots.map((slot) => slot.endedByItself))
  }

  /** Resolves once all of them serve. */
  async start(): Promise<void> {
    await Promise.all(this.#slots.map((slot) => slot.start()))
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  /** At once, whatever they do. */
  async end(): Promise<void> {
    this.#ending = true
    await Promise.all(this.#slots.map((slot) => slot.end()))
  }

  async #stop(): Promise<void> {
    await Promise.all(this.#slots.map((slot) => slot.stop()))
    // Whoever ends at once leaves the database by exiting; half a farewell would keep that from happening.
    if (!this.#ending) await this.#options.embedded?.stop()
  }
}

/** The place of one process: whoever dies there has a successor. */
class Slot {
  readonly endedByItself: Promise<Error>
  readonly #number: number
  readonly #options: ProcessesOptions
  readonly #clock: Clock
  readonly #pause = new RestartPause()
  #ready: () => void = () => {}
  #failed: (error: Error) => void = () => {}
  #ended: () => void = () => {}
  #endsByItself: (reason: Error) => void = () => {}
  readonly #wasReady = new Promise<void>((resolve, reject) => {
    this.#ready = resolve
    this.#failed = reject
  })
  readonly #end = new Promise<void>((resolve) => {
    this.#ended = resolve
  })
  #worker: Worker | null = null
  #timer = { cancel: () => {} }
  #stopping = false

  constructor(number: number, options: ProcessesOptions, clock: Clock) {
    this.#number = number
    this.#options = options
    this.#clock = clock
    this.endedByItself = new Promise((resolve) => {
      this.#endsByItself = resolve
    })
  }

  start(): Promise<void> {
    this.#fork()
    return this.#wasReady
  }

  /** Asks it to drain; ends it when it takes too long. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#timer.cancel()
    if (this.#worker === null) return
    this.#timer = this.#clock.timer(GRACE_MS, () => void this.end())
    const message: ToProcess = { belfry: 'stop' }
    this.#worker.send(message, () => {})
    await this.#end
    this.#timer.cancel()
  }

  async end(): Promise<void> {
    this.#stopping = true
    this.#timer.cancel()
    if (this.#worker === null) return
    this.#worker.process.kill('SIGKILL')
    await this.#end
  }

  #fork(): void {
    const { port, logger } = this.#options
    const worker = cluster.fork({ PORT: String(port), BELFRY_PROCESS: String(this.#number) })
    this.#worker = worker
    closeConnectionsLeftBy(worker.process)
    let servedFrom: number | null = null
    worker.on('message', (message: unknown) => {
      if (!isFromProcess(message)) return
      if (message.belfry === 'ready') {
        servedFrom = this.#clock.now()
        this.#ready()
      }
      // Only of weight before the first one served; a later one is simply tried again.
      else if (message.belfry === 'failed') this.#failed(new StartFailure(message.message, message.exitCode))
      else this.#endsByItself(new StartFailure(message.message, message.exitCode))
    })
    worker.on('error', (error) => logger.error('a process cannot be reached', { process: this.#number, error }))
    worker.once('exit', (code, signal) => {
      this.#worker = null
      if (this.#stopping) return this.#ended()
      const pauseMs = this.#pause.next(servedFrom === null ? 0 : this.#clock.now() - servedFrom)
      logger.error('a process ended and is started again', { process: this.#number, code, signal, pauseMs })
      this.#timer = this.#clock.timer(pauseMs, () => this.#fork())
    })
  }
}
