import { Connection } from './connection.ts'
import { Custody } from './custody.ts'
import { LeaseBoard } from './lease-board.ts'
import type { LeaseAnswer, WorkerFields } from './lease-calls.ts'
import type { Logger } from './logger.ts'
import { checkOptions, GRACE_MS, LEASE_MS, type QueueOptions, slotsOptions, type WorkerOptions } from './options.ts'
import { onceOnSignal } from './process-signals.ts'
import { QueuePoller } from './queue-poller.ts'
import { Registration } from './registration.ts'
import type { RunHome } from './remote-run.ts'
import { ServerClock } from './server-clock.ts'
import { Slots } from './slots.ts'
import { ThreadHost } from './thread-host.ts'
import { makeWorkerId } from './worker-id.ts'
import { systemWorkerRuntime, type WorkerRuntime } from './worker-runtime.ts'

interface Serving {
  slots: Slots
  poller: QueuePoller
}

/** How long the last calls may take after the grace time, if the server is away. */
const LAST_CALLS_MS = 5_000

/**
 * Performs the runs of queues: leases them, keeps their leases alive, calls the handlers and tells how they ended. Whatever
 * fails on the way is repeated; what a worker holds when it dies is leased again when the leases have expired.
 */
export class Worker {
  readonly id: string
  readonly #graceMs: number
  readonly #handlesSignals: boolean
  readonly #runtime: WorkerRuntime
  readonly #logger: Logger
  readonly #registration: Registration
  readonly #connection: Connection
  readonly #custody: Custody
  readonly #thread: ThreadHost | null
  readonly #serving: Serving[]
  #forgetSignals = () => {}
  #isStarted = false
  #stopped: Promise<void> | null = null
  #onIdle = () => {}

  constructor(options: WorkerOptions) {
    checkOptions(options)
    const { client, runtime = systemWorkerRuntime, logger = console, leaseMs = LEASE_MS } = options
    this.id = options.id ?? makeWorkerId(runtime.uniqueId())
    this.#graceMs = options.graceMs ?? GRACE_MS
    this.#handlesSignals = options.handleSignals ?? true
    this.#runtime = runtime
    this.#logger = logger
    const serverClock = new ServerClock(runtime)
    const own = { client, workerId: this.id, leaseMs, runtime, logger, serverClock }
    this.#connection = new Connection({ runtime, logger, probe: (call) => this.#registration.put(call) })
    const deps = { ...own, connection: this.#connection }
    this.#serving = Object.entries(options.queues).map(([queue, one]) => this.#serve(queue, one, deps))
    const board = new LeaseBoard(this.#serving.reduce((sum, { slots }) => sum + slots.mostHeld, 0))
    this.#custody = new Custody({
      ...deps,
      board,
      onSettled: (home) => this.#room(home),
      onDraining: () => this.#askedToDrain(),
      onLeaseLost: options.onLeaseLost ?? (() => {}),
    })
    this.#registration = new Registration(this.#describe(options), own)
    const { address } = client
    this.#thread = address
      ? new ThreadHost({ ...own, board, address, onAnswer: (answer) => this.#custody.heard(answer) })
      : null
  }

  /** Begins to lease and perform. It goes on until `stop`, a signal, or an operator who has it drained. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    if (this.#handlesSignals) this.#forgetSignals = onceOnSignal(() => void this.stop())
    this.#registration.start(this.#connection)
    this.#thread?.start()
    this.#custody.start()
    for (const { poller } of this.#serving) poller.wake()
  }

  /** Takes nothing more, waits for handlers up to the grace time, gives the rest back, and tells the server all of it. */
  stop(): Promise<void> {
    this.#stopped ??= this.#isStarted ? this.#drain() : Promise.resolve()
    // Whoever starts it after this starts nothing.
    this.#isStarted = true
    return this.#stopped
  }

  #serve(
    queue: string,
    options: QueueOptions,
    deps: Omit<ConstructorParameters<typeof QueuePoller>[2], 'onLeased'> & { serverClock: ServerClock },
  ): Serving {
    const slots = new Slots(slotsOptions(options), {
      ...deps,
      begin: (run) => this.#custody.begin(run),
      onEnd: (run, end) => this.#custody.ended(run, end),
      onRoom: () => this.#room(slots),
    })
    const poller = new QueuePoller(queue, slots, { ...deps, onLeased: (answer) => this.#leased(answer, slots) })
    return { slots, poller }
  }

  #leased(answer: LeaseAnswer, slots: Slots): void {
    this.#custody.take(answer, slots, this.#stopped !== null)
    if (answer.draining) this.#askedToDrain()
  }

  #room(home: RunHome): void {
    this.#serving.find(({ slots }) => slots === home)?.poller.wake()
    if (this.#stopped) this.#onIdle()
  }

  #askedToDrain(): void {
    if (this.#stopped) return
    this.#logger.info('Belfry asks the worker to drain', { worker: this.id })
    void this.stop()
  }

  async #drain(): Promise<void> {
    this.#forgetSignals()
    for (const { slots, poller } of this.#serving) {
      slots.stop()
      poller.close()
    }
    for (const { slots } of this.#serving) this.#custody.giveBack(slots.takeWaiting())
    const polls = this.#registration.drain().then(() => Promise.all(this.#serving.map(({ poller }) => poller.stop())))
    await this.#within(this.#graceMs, this.#idle())
    this.#custody.abandonActive()
    await polls
    await this.#within(LAST_CALLS_MS, this.#custody.drained())
    await this.#custody.end()
    await this.#registration.remove()
    this.#connection.end()
    await this.#thread?.stop()
  }

  /** Ends when no handler is at work. */
  #idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = () => {
        if (this.#serving.every(({ slots }) => slots.active === 0)) resolve()
      }
      this.#onIdle()
    })
  }

  async #within(ms: number, ended: Promise<void>): Promise<void> {
    let timer = { cancel: () => {} }
    const late = new Promise<void>((resolve) => {
      timer = this.#runtime.timer(ms, resolve)
    })
    await Promise.race([ended, late])
    timer.cancel()
  }

  #describe({ version, labels }: WorkerOptions): WorkerFields {
    return {
      queues: this.#serving.map(({ poller }) => poller.queue),
      capacity: this.#serving.reduce((sum, { slots }) => sum + slots.slotCount, 0),
      ...(version === undefined ? {} : { version }),
      ...(labels === undefined ? {} : { labels }),
    }
  }
}
