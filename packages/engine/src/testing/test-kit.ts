import type pg from 'pg'
import { BelfryError } from '../errors.ts'
import type { ActiveRun } from '../executors/handlers/active-run.ts'
import { Library } from '../library.ts'
import type { Instant, ManualClock } from '../runtime/clock.ts'
import { systemRandom } from '../runtime/random.ts'
import { DAY_MS } from '../schedule/duration.ts'
import { Tenant } from '../tenant.ts'
import { TenantScope } from '../tenant-scope.ts'
import { nextDueInstant } from './next-due.sql.ts'
import { startTestNode, type TestNode } from './test-node.ts'

export interface TestKitOptions {
  /** A connection string, or what `new pg.Client()` takes. */
  database: string | pg.ClientConfig
  /** Without it the kit makes a schema of its own, and `stop()` drops it. */
  schema?: string
  shards?: number
  /** What the clock shows at first. */
  start?: Date | number
  /** Chance is drawn from it: the same seed, the same backoffs. In a schema that was given it differs each time. */
  seed?: number
  leaseMs?: number
  cancelGraceMs?: number
  /** What `purge` takes for expired is older than so many days. */
  historyDays?: number
}

export interface SettleOptions {
  /** `finish` waits for handlers that are at work; `leave` lets them go on. */
  running?: 'finish' | 'leave'
}

const DEFAULTS = { shards: 4, start: Date.UTC(2026, 0, 1), leaseMs: 30_000, cancelGraceMs: 10_000, historyDays: 400 }
const MAX_ROUNDS = 1_000
const MAX_STOPS = 10_000
const MAX_READS = 1_000
/** Real time: how long `settle` waits for a handler before it says which one does not end. */
const PATIENCE_MS = 10_000

/** A node with a clock that you move: everything as in the library, but nothing happens until you make the step. */
export async function startTestKit(options: TestKitOptions): Promise<TestKit> {
  const { database, shards, start, leaseMs, cancelGraceMs, historyDays } = { ...DEFAULTS, ...options }
  const schema = options.schema ?? `belfry_test_${systemRandom.bytes(6).toString('hex')}`
  const seed = options.seed ?? (options.schema === undefined ? 1 : systemRandom.bytes(4).readUInt32BE(0))
  const terms = { leaseMs, cancelGraceMs, historyDays }
  const node = await startTestNode({ database, schema, shards, start: Number(start), seed, ...terms })
  const kit = new TestKit(node, { leaseMs, ownsSchema: options.schema === undefined })
  // The first pulse says that the node lives, and gives it its shards.
  await kit.pulse()
  return kit
}

export class TestKit extends Library {
  readonly clock: ManualClock
  readonly schema: string
  readonly #node: TestNode
  readonly #terms: { leaseMs: number; ownsSchema: boolean }
  readonly #queues = new Map<string, number>()
  readonly #atWork = new Map<Promise<unknown>, string>()
  #started = 0
  #ended = 0
  /** What had started and ended at the end of the last round. */
  #counted = 0
  #partitionedOn: Instant
  #stopped: Promise<void> | null = null

  constructor(node: TestNode, terms: { leaseMs: number; ownsSchema: boolean }) {
    super(node.engine)
    this.#node = node
    this.#terms = terms
    this.clock = node.clock
    this.schema = node.db.schema
    this.#partitionedOn = node.clock.now()
  }

  now(): Date {
    return new Date(this.clock.now())
  }

  /** What a tenant sees, as over HTTP: reads run under row-level security. */
  async tenant(name: string, actor = 'test'): Promise<Tenant> {
    const { engine, readers } = this.#node
    return new Tenant(
      new TenantScope({ tenant: name, tenantId: await engine.registry.tenantId(name), actor }, engine, readers),
    )
  }

  /** Performs the runs of a queue, as soon as a step takes them. */
  async handle(
    queue: string,
    handler: (run: ActiveRun) => unknown,
    options: { concurrency?: number; tenant?: string } = {},
  ): Promise<void> {
    const { concurrency = 10, tenant = 'default' } = options
    const { engine } = this.#node
    const queueId = await engine.registry.queueId(await engine.registry.tenantId(tenant), queue)
    if (engine.handlers.serves(queueId))
      throw new BelfryError('already_handled', `the queue "${queue}" has a handler already`)
    engine.handle(queueId, (run) => this.#perform(run, handler), concurrency)
    this.#queues.set(queue, queueId)
  }

  /** Says that the node lives, learns what there is to do, and closes expired leases unless there is grace. */
  async pulse(): Promise<void> {
    await this.#ensurePartitions()
    // Without watermarks, whatever the clock says: what others wrote meanwhile is to be found.
    this.#node.engine.pulse.sweepNext()
    await this.#node.engine.pulse.runOnce()
  }

  /** Reads the timers of the coming seconds. */
  async readTimers(): Promise<void> {
    await untilIdle(() => this.#node.engine.reader.runOnce())
  }

  /** Makes runs of timers that were read and are due; answers how many timers it took. */
  async promote(): Promise<number> {
    await this.#ensurePartitions()
    const { promoted } = await this.#node.engine.promoter.runOnce()
    await this.#handlersBegin()
    return promoted
  }

  /**
   * Makes runs ready, or gives them their time, that waited: for a time, for another run of their job, for a slot or the rate of their
   * key, or for the end of a pause; answers how many.
   */
  async wakeWaiting(): Promise<number> {
    const { sweep, waker } = this.#node.engine.waking
    sweep.restart()
    await untilIdle(() => sweep.runOnce())
    return (await untilIdle(() => waker.runOnce())).reduce((all, { woken }) => all + woken, 0)
  }

  /** Tells jobs that wait for others what became of those; answers of how many ends. */
  async deliver(): Promise<number> {
    const steps = await untilIdle(() => this.#node.engine.deliverer.runOnce())
    await this.#handlersBegin()
    return steps.reduce((all, { delivered }) => all + delivered, 0)
  }

  /** Takes backfills further; answers how many runs it made or saw end. */
  async backfill(): Promise<number> {
    return (await this.#node.engine.backfiller.runOnce()).changed
  }

  /** Leases ready runs of a queue to its handler; answers how many began. */
  async claim(queue: string): Promise<number> {
    const queueId = this.#queues.get(queue)
    if (queueId === undefined) throw new BelfryError('invalid_argument', `the queue "${queue}" has no handler here`)
    const before = this.#started
    await this.#node.engine.handlers.claimer(queueId)?.runOnce()
    await this.#handlersBegin()
    return this.#started - before
  }

  /** Renews leases of handlers at work, and tells handlers that their time is up or their lease lost. */
  async keep(): Promise<void> {
    await this.#node.engine.keeper.runOnce()
  }

  /** Plans jobs anew whose calendars have changed. */
  async replan(): Promise<void> {
    await untilIdle(() => this.#node.engine.replanning.calendars.runOnce())
  }

  /** Closes leases that have expired; answers how many. It knows no grace: here the clock jumps all the time. */
  async reap(): Promise<number> {
    await this.#ensurePartitions()
    return this.#node.engine.reaper.reap(this.#shards, this.clock.now())
  }

  /** Ends runs of recurring jobs that nobody began by their start deadline; answers how many. */
  async expire(): Promise<number> {
    await this.#ensurePartitions()
    const { expirer } = this.#node.engine
    expirer.restart()
    return (await untilIdle(() => expirer.runOnce())).reduce((all, { ended }) => all + ended, 0)
  }

  /** Removes what has expired, as a node does every hour. */
  async purge(): Promise<void> {
    await this.#node.engine.purge()
  }

  /** All steps, again and again, until nothing changes any more. Time stands still meanwhile. */
  async settle({ running = 'finish' }: SettleOptions = {}): Promise<void> {
    // Who has just been given shards asks about them with its next pulse.
    await this.pulse()
    await this.replan()
    for (let round = 0; round < MAX_ROUNDS; round++) {
      await this.pulse()
      await this.keep()
      await this.readTimers()
      let changed = (await this.promote()) + (await this.reap()) + (await this.expire())
      changed += await this.backfill()
      for (const queue of this.#queues.keys()) changed += await this.claim(queue)
      await this.#handlersEnd(running)
      changed += await this.wakeWaiting()
      changed += await this.deliver()
      // Also if a handler ended before: what its end makes possible is found in the round after.
      const before = this.#counted
      this.#counted = this.#started + this.#ended
      if (changed === 0 && this.#counted === before) return
    }
    throw new Error(`nothing came to rest in ${MAX_ROUNDS} rounds: does something hold a row, or is a job always due?`)
  }

  /** Lets time pass as a living node sees it: stops at every instant at which something is due, and settles there. */
  async pass(ms: number, options: SettleOptions = {}): Promise<void> {
    const until = this.clock.now() + ms
    for (let stop = 0; stop < MAX_STOPS; stop++) {
      await this.settle(options)
      const now = this.clock.now()
      if (now >= until) return
      const heartbeatAt = this.#atWork.size > 0 ? now + Math.floor(this.#terms.leaseMs / 3) : until
      this.clock.advance(Math.min(until, heartbeatAt, await nextDueInstant(this.#node.db, now)) - now)
    }
    throw new Error(`more than ${MAX_STOPS} instants at which something is due: let less time pass at once`)
  }

  /** Gives back what still runs, and closes everything. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    const { engine, db, readers } = this.#node
    await engine.stop(0)
    if (this.#terms.ownsSchema) {
      const client = await db.connect()
      await client.query(`drop schema if exists "${this.schema}" cascade`).finally(() => client.end())
    }
    await readers.close()
    await db.close()
  }

  #perform(run: ActiveRun, handler: (run: ActiveRun) => unknown): Promise<unknown> {
    this.#started++
    const work = (async () => handler(run))()
    this.#atWork.set(work, run.id)
    const end = () => {
      this.#atWork.delete(work)
      this.#ended++
    }
    work.then(end, end)
    return work
  }

  /** In a turn of the event loop of their own, and some when the row says so. */
  async #handlersBegin(): Promise<void> {
    await nextTurn()
    await this.#node.engine.beginnings.drained()
  }

  /** A handler may ask the database, so a turn of the event loop is not enough; one that hangs is named. */
  async #handlersEnd(running: 'finish' | 'leave'): Promise<void> {
    await this.#handlersBegin()
    if (running === 'finish' && this.#atWork.size > 0) {
      let giveUp: NodeJS.Timeout | undefined
      const late = new Promise<'late'>((resolve) => {
        giveUp = setTimeout(() => resolve('late'), PATIENCE_MS)
      })
      const first = await Promise.race([Promise.allSettled([...this.#atWork.keys()]), late])
      clearTimeout(giveUp)
      if (first === 'late') {
        const runs = [...this.#atWork.values()].join(', ')
        throw new Error(`handlers are still at work: ${runs}. Settle with { running: 'leave' } if they shall be`)
      }
    }
    await nextTurn()
    await this.#node.engine.handlers.settled()
  }

  get #shards(): number[] {
    return Array.from({ length: this.#node.shards }, (_, shard) => shard)
  }

  /** A day's history needs its partition; a node makes them in a loop of its own. */
  async #ensurePartitions(): Promise<void> {
    const now = this.clock.now()
    if (now - this.#partitionedOn < DAY_MS) return
    this.#partitionedOn = now
    await this.#node.engine.partitioner.ensure()
  }
}

/** Makes a step again and again until there is nothing left to do at once; answers what each has said. */
async function untilIdle<Done extends { waitMs: number }>(step: () => Promise<Done>): Promise<Done[]> {
  const steps: Done[] = []
  while (steps.length < MAX_READS && (steps.at(-1)?.waitMs ?? 0) === 0) steps.push(await step())
  return steps
}

/** The ends of handlers are told in a turn of the event loop of their own. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
