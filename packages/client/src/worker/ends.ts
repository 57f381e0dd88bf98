import type { Connection } from './connection.ts'
import { type Judgement, plainCompletion } from './judge.ts'
import type { CallOptions, Completion, ItemOutcome, WorkerClient } from './lease-calls.ts'
import type { Logger } from './logger.ts'
import { Outbox } from './outbox.ts'
import type { RemoteRun } from './remote-run.ts'
import type { ServerClock } from './server-clock.ts'

/** The server closes an attempt at its deadline: so long after it nobody needs to hear of its end. */
const POINTLESS_AFTER_MS = 600_000

interface Ended {
  run: RemoteRun
  completion: Completion
  bytes: number
  isPlain: boolean
}

interface Released {
  run: RemoteRun
  hasBegun: boolean
  bytes: number
}

interface EndsDeps {
  client: WorkerClient
  workerId: string
  connection: Connection
  serverClock: ServerClock
  logger: Logger
  onLeaseLost(run: RemoteRun): void
  /** The server has heard of the end, or never will. */
  onSettled(run: RemoteRun): void
}

/** Tells the server how attempts ended: completions and releases, each in batches. */
export class Ends {
  readonly #deps: EndsDeps
  readonly #completions: Outbox<Ended>
  readonly #releases: Outbox<Released>

  constructor(deps: EndsDeps) {
    this.#deps = deps
    const { connection, logger, serverClock } = deps
    const areWanted = <Item extends { run: RemoteRun }>(items: Item[]) => {
      const oldest = serverClock.now() - POINTLESS_AFTER_MS
      return items.filter(({ run }) => run.deadlineAt > oldest)
    }
    const onGone = ({ run }: { run: RemoteRun }) => deps.onSettled(run)
    this.#completions = new Outbox<Ended>({
      connection,
      logger,
      areWanted,
      onGone,
      send: (items, options) => this.#complete(items, options),
      simplify: ({ isPlain, run, bytes, completion }) =>
        isPlain ? null : { run, bytes, isPlain: true, completion: plainCompletion(completion) },
    })
    this.#releases = new Outbox<Released>({
      connection,
      logger,
      areWanted,
      onGone,
      send: (items, options) => this.#release(items, options),
      simplify: () => null,
    })
  }

  tell(run: RemoteRun, judgement: Judgement): void {
    if (judgement === 'release' || judgement === 'give_back')
      this.#releases.push({ run, bytes: 200, hasBegun: judgement === 'release' })
    else this.#completions.push({ run, isPlain: false, ...judgement })
  }

  /** Gives up what the server has not heard of. */
  end(): void {
    this.#completions.end()
    this.#releases.end()
  }

  async #complete(items: Ended[], options: CallOptions): Promise<void> {
    const { client, workerId } = this.#deps
    const results = items.map(({ completion }) => completion)
    const answer = await client.leases.complete({ workerId, results }, options)
    this.#read(items, answer.results)
  }

  async #release(items: Released[], options: CallOptions): Promise<void> {
    const { client, workerId } = this.#deps
    const answer = await client.leases.release(
      {
        workerId,
        leases: items.map(({ run: { token }, hasBegun }) => (hasBegun ? { token } : { token, begun: false as const })),
      },
      options,
    )
    this.#read(items, answer.leases)
  }

  #read(items: { run: RemoteRun }[], outcomes: ItemOutcome[]): void {
    const { logger, onLeaseLost } = this.#deps
    outcomes.forEach(({ token, outcome, note }, i) => {
      if (outcome === 'ok' && note === undefined) return
      const run = items[i]?.run.token === token ? items[i].run : items.find((item) => item.run.token === token)?.run
      if (!run) return
      if (outcome !== 'ok') onLeaseLost(run)
      else logger.warn('Belfry notes about the end of an attempt', { runId: run.id, attempt: run.attempt, note })
    })
  }
}
