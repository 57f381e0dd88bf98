import { inject, onTestFinished } from 'vitest'
import type { LimitsInput } from '../src/concurrency/shared-limit-fields.ts'
import type { ActiveRun } from '../src/executors/handlers/active-run.ts'
import { Jobs } from '../src/jobs.ts'
import { Tenant } from '../src/tenant.ts'
import { TenantScope } from '../src/tenant-scope.ts'
import { startTestNode } from '../src/testing/test-node.ts'
import { createDatabase, KIT_DAYS } from './database.ts'

export const START = Date.UTC(2026, 0, 1)
const SHARDS = [0, 1]
const LEASE_MS = 30_000

export type LimitedNode = Awaited<ReturnType<Awaited<ReturnType<typeof setup>>['startNode']>>

/** Nodes that make no step by themselves, and one who looks at how many runs are leased. */
export async function setup() {
  const database = await createDatabase({ days: KIT_DAYS })
  onTestFinished(() => database.drop())
  const { schema, query } = database
  let seed = 0
  const startNode = async () => {
    const terms = { shards: SHARDS.length, start: START, leaseMs: LEASE_MS, cancelGraceMs: 10_000, seed: ++seed }
    const node = await startTestNode({ database: inject('postgres'), schema, ...terms })
    const { engine, db, clock, readers } = node
    onTestFinished(async () => {
      await engine.stop(0)
      await readers.close()
      await db.close()
    })
    engine.reader.own(SHARDS)
    engine.waking.own(SHARDS)
    await engine.pulse.runOnce()
    const caller = { tenantId: 1, tenant: 'default', actor: 'test', isInstallation: true }
    const tenant = new Tenant(new TenantScope(caller, engine, readers))
    const held: { run: ActiveRun; end(): void }[] = []
    const queueIdOf = (queue: string) => engine.registry.queueId(1, queue)
    return {
      engine,
      db,
      clock,
      tenant,
      jobs: new Jobs(engine),
      limit: (queue: string, limits: LimitsInput) => tenant.queues.put(queue, limits),
      /** Runs that this node performs, until they are let go. */
      held,
      handle: async (queue: string, concurrency = 10) =>
        engine.handle(
          await queueIdOf(queue),
          (run) => new Promise<void>((resolve) => held.push({ run, end: resolve })),
          concurrency,
        ),
      claim: async (queue: string) => {
        await engine.handlers.claimer(await queueIdOf(queue))?.runOnce()
        // The handlers begin in a turn of their own.
        await new Promise((resolve) => setImmediate(resolve))
      },
      /** Ends so many of the runs at work. */
      end: async (count: number) => {
        for (const one of held.splice(0, count)) one.end()
        await new Promise((resolve) => setImmediate(resolve))
        await engine.handlers.settled()
      },
      /** What there is to do, without watermarks. */
      pulse: async () => {
        engine.pulse.sweepNext()
        await engine.pulse.runOnce()
      },
      readTimers: async () => {
        while ((await engine.reader.runOnce()).waitMs === 0);
      },
      reap: () => engine.reaper.reap(SHARDS, clock.now()),
    }
  }
  /** Counted outside of those who take part. */
  const leased = async (): Promise<number> => {
    const [row] = await query<{ n: number }>('select count(*)::int as n from runs where state = 1')
    return row?.n ?? -1
  }
  return { ...database, startNode, leased }
}

export const payloads = (queue: string, count: number) => Array(count).fill({ queue, payload: 1, timeout: '1h' })
