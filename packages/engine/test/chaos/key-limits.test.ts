import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { OUTCOME } from '../../src/job/states.ts'
import { pause } from '../../src/runtime/pause.ts'
import { seededRandom } from '../../src/runtime/random.ts'
import { createDatabase } from '../database.ts'
import { BelfryNode, NodeDied, startNodes } from './fleet.ts'
import { Ledger } from './ledger.ts'
import { keysOverLimit } from './over-limit.ts'

/** The size that is proven by hand: 100,000 runs of 1,000 keys. */
const isFull = process.env.BELFRY_CHAOS_KEYS === 'full'
const RUNS = isFull ? 100_000 : 1_600
const KEYS = isFull ? 1_000 : 40
const BATCH = isFull ? 1_000 : 200
const KILLS = isFull ? 24 : 3
const SLOWEST_MS = 60
const LEASE_MS = 2_000
const seed = Number(process.env.BELFRY_CHAOS_SEED ?? 7)
const retry = { maxAttempts: 100, backoff: { type: 'fixed', initial: '100ms' } }

async function observe(query: (text: string) => Promise<unknown[]>, schema: string, isOver: () => boolean) {
  const seen: unknown[] = []
  let looks = 0
  let most = 0
  while (!isOver()) {
    seen.push(...(await query(keysOverLimit(schema))))
    const [row] = (await query(`select count(*)::int as n from ${schema}.runs r where r.state = 1`)) as { n: number }[]
    most = Math.max(most, row?.n ?? 0)
    looks++
    await pause(isFull ? 20 : 5)
  }
  return { seen, looks, most }
}

test(
  'whoever is killed, stopped or slow: nobody ever sees more leases of a key than its limit, and every run ends',
  async () => {
    const random = seededRandom(seed)
    const database = await createDatabase({ days: { around: Date.now(), ahead: 2 } })
    onTestFinished(() => database.drop())
    const watcher = new pg.Client(database.connection)
    await watcher.connect()
    onTestFinished(() => watcher.end())
    const ledger = await Ledger.open()
    const options = {
      database: inject('postgres'),
      schema: database.schema,
      ledger,
      queues: { work: 150 },
      leaseMs: LEASE_MS,
    }
    const nodes = await startNodes(3, options)
    const live = (): BelfryNode => nodes[Math.floor(random.float() * nodes.length)] as BelfryNode
    let isOver = false
    const observed = observe(
      async (text) => (await watcher.query(text)).rows,
      database.schema,
      () => isOver,
    )

    let made = 0
    const create = async () => {
      while (made < RUNS) {
        const jobs = Array.from({ length: BATCH }, () => {
          const key = Math.floor(random.float() * KEYS)
          const payload = { ms: Math.floor(random.float() * SLOWEST_MS), failsOnce: random.float() < 0.03 }
          return { queue: 'work', payload, retry, concurrency: { key: `key-${key}`, limit: 1 + (key % 4) } }
        })
        try {
          made += (await live().createMany(jobs)).length
        } catch (error) {
          // A node that was stopped in the middle of it for longer than the database waits does not know what became of it.
          const isUnknown = (error as { code?: string }).code === 'database_unavailable'
          if (!(error instanceof NodeDied) && !isUnknown) throw error
        }
      }
    }
    const wreak = async () => {
      let stopped: BelfryNode | null = null
      for (let kill = 0; kill < KILLS; kill++) {
        await pause(isFull ? 2_000 : 700)
        const victim = live()
        if (stopped !== null) stopped.signal('SIGCONT')
        if (kill % 3 === 1) {
          // Longer than its leases: it wakes up with slots that others have had meanwhile.
          stopped = victim
          victim.signal('SIGSTOP')
          await pause(LEASE_MS + 1_000)
          continue
        }
        stopped = null
        await victim.kill()
        nodes[nodes.indexOf(victim)] = new BelfryNode(options)
      }
      stopped?.signal('SIGCONT')
    }
    await Promise.all([create(), wreak()])
    const left = async () => (await database.query<{ n: number }>('select count(*)::int as n from runs'))[0]?.n
    await expect.poll(left, { interval: 100, timeout: isFull ? 1_200_000 : 60_000 }).toBe(0)
    isOver = true
    const { seen, looks, most } = await observed
    if (isFull) process.stdout.write(`${made} runs, ${looks} looks, at most ${most} leases at a time\n`)
    expect(seen).toEqual([])
    expect(looks).toBeGreaterThan(50)
    const ended = await database.query<{ runs: number; jobs: number }>(
      `select count(*)::int as runs, count(distinct job_id)::int as jobs from attempts where final and outcome = ${OUTCOME.succeeded}`,
    )
    expect(ended[0]?.runs).toBe(ended[0]?.jobs)
    expect(ended[0]?.runs).toBeGreaterThanOrEqual(made)
  },
  isFull ? 1_800_000 : 120_000,
)
