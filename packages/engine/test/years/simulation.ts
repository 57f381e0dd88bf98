import type pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { PARTITIONED_TABLES } from '../../src/history/partition.ts'
import type { JobInput } from '../../src/intake/job-input.ts'
import { RUN_STATE } from '../../src/job/states.ts'
import { Jobs } from '../../src/jobs.ts'
import type { Instant, ManualClock } from '../../src/runtime/clock.ts'
import { startTestNode, type TestNode } from '../../src/testing/test-node.ts'
import { createDatabase } from '../database.ts'

const SHARDS = 4
export const QUEUE = 'work'
/** Less than the shortest pause between two times of one job: times that are decided together would meet each other. */
const TOGETHER_MS = 20_000
const MAX_IDLE = 10

/** Shard by shard, because that is what the index is by: there are thousands of stops, and ten times as many dead rows. */
const STATE = {
  name: 'state_of_simulation',
  text: `select extract(epoch from min(t.due_at)) * 1000 as due,
      (select count(*) from runs where state = ${RUN_STATE.ready}) as ready
    from generate_series(0, ${SHARDS - 1}) as s (shard)
    cross join lateral (select due_at from timers where shard = s.shard and due_at < 'infinity' order by due_at limit 1) t`,
}

/** Nodes on one schema whose time jumps from due time to due time: every step is made by hand, and nothing waits. */
export class Simulation {
  readonly clock: ManualClock
  readonly jobs: Jobs
  readonly query: (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>
  readonly #node: TestNode
  readonly #pool: pg.Pool
  #queueId = 0

  private constructor(node: TestNode, query: Simulation['query'], pool: pg.Pool) {
    this.#node = node
    this.clock = node.clock
    this.jobs = new Jobs(node.engine)
    this.query = query
    this.#pool = pool
  }

  static async start({ start, seed }: { start: Instant; seed: number }): Promise<Simulation> {
    const { schema, query, pool, drop } = await createDatabase({ fresh: true })
    onTestFinished(drop)
    const node = await startTestNode({
      ...{ database: inject('postgres'), schema, shards: SHARDS, start, seed },
      ...{ leaseMs: 30_000, cancelGraceMs: 10_000 },
    })
    onTestFinished(async () => {
      await node.engine.stop(0)
      await node.readers.close()
      await node.db.close()
    })
    // Days are made one by one, and tested elsewhere; here that would take most of the time.
    for (const table of PARTITIONED_TABLES)
      if (table !== 'specs') await query(`create table ${table}_rest partition of ${table} default`)
    const simulation = new Simulation(node, query, pool)
    await node.engine.pulse.runOnce()
    return simulation
  }

  now(): Instant {
    return this.clock.now()
  }

  async handle(perform: (nominalAt: Instant) => unknown = () => {}): Promise<void> {
    const { engine } = this.#node
    this.#queueId = await engine.registry.queueId(await engine.registry.tenantId('default'), QUEUE)
    engine.handle(this.#queueId, async (run) => perform(run.nominalAt.getTime()), 5_000)
  }

  async create(inputs: readonly JobInput[]): Promise<string[]> {
    const made = await this.jobs.createMany(inputs.map((input) => ({ ...input, queue: QUEUE })))
    return made.map(({ jobId }) => jobId)
  }

  /** Goes on to `until`, stopping wherever something is due; what is due within seconds is taken together. */
  async pass(until: Instant): Promise<void> {
    for (let idle = 0; idle < MAX_IDLE; ) {
      const { due, ready } = await this.#state()
      if (ready > 0) await this.#claim()
      else if (due > until) return this.clock.advance(Math.max(0, until - this.now()))
      else this.clock.advance(Math.max(0, Math.min(due + TOGETHER_MS, until) - this.now()))
      idle = (await this.step()) + ready === 0 ? idle + 1 : 0
    }
    throw new Error(`something is due at ${new Date(this.now()).toISOString()} and nobody promotes it`)
  }

  /** Nobody does anything: nodes are down, or the clock jumps. */
  standStill(ms: number): void {
    this.clock.advance(ms)
  }

  /** The next instant at which something is due. */
  async nextDue(): Promise<Instant> {
    return (await this.#state()).due
  }

  /** Reads, promotes, performs and finishes what is due now; answers how many timers it took. */
  async step(): Promise<number> {
    const { engine } = this.#node
    for (const shard of engine.reader.ownedShards) engine.reader.want(shard, this.now())
    await engine.reader.runOnce()
    const { promoted } = await engine.promoter.runOnce()
    await this.#handlersEnd()
    return promoted
  }

  /** What was not born leased is taken like by any worker. */
  async #claim(): Promise<void> {
    await this.#node.engine.handlers.claimer(this.#queueId)?.runOnce()
    await this.#handlersEnd()
  }

  async #handlersEnd(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    await this.#node.engine.handlers.settled()
  }

  async #state(): Promise<{ due: Instant; ready: number }> {
    const [row] = (await this.#pool.query(STATE)).rows
    return { due: row?.due === null ? Number.POSITIVE_INFINITY : Number(row?.due), ready: Number(row?.ready) }
  }
}
