import { expect, onTestFinished, test } from 'vitest'
import { pause } from '../../src/runtime/pause.ts'
import { type Random, seededRandom } from '../../src/runtime/random.ts'
import { audit, auditRecurring } from './audit.ts'
import { BelfryNode, NodeDied, startNodes } from './fleet.ts'
import { Ledger } from './ledger.ts'
import { PostgresServer } from './postgres-server.ts'

const SEED = Number(process.env.BELFRY_CHAOS_SEED ?? 20)
const RUNS = 20_000
/** Large enough for claims of hundreds: nodes must die while they hold those too. */
const BATCH = 400
const CONCURRENCY = 300
const NODES = 3
const KILLS = 9
const LEASE_MS = 2_000
/** Kills must not use up the attempts of a run: that would be another promise. */
const retry = { maxAttempts: 100, backoff: { type: 'fixed', initial: '200ms' } }

async function setup() {
  const server = new PostgresServer()
  await server.start()
  onTestFinished(() => server.remove())
  const ledger = await Ledger.open()
  const options = { database: server.connection, ledger, queues: { work: CONCURRENCY }, leaseMs: LEASE_MS }
  const nodes = await startNodes(NODES, options)
  const any = (random: Random) => nodes[Math.floor(random.float() * nodes.length)] as BelfryNode
  const all = [...nodes]
  const replace = (node: BelfryNode) => {
    all.push(new BelfryNode(options))
    nodes[nodes.indexOf(node)] = all.at(-1) as BelfryNode
  }
  return { server, ledger, nodes, all, any, replace }
}

type Fleet = Awaited<ReturnType<typeof setup>>

/** The i-th of a call: now, later, or after up to three jobs before it. */
function newJob(random: Random, i: number): { ref: string; after?: { jobs: string[] } } & Record<string, unknown> {
  const payload = { ms: Math.floor(random.float() * 80), failsOnce: random.float() < 0.05 }
  const job = { ref: `j${i}`, queue: 'work', payload, retry }
  const kind = random.float()
  if (kind < 0.5) return job
  if (kind < 0.7) return { ...job, delay: `${Math.floor(random.float() * 12_000)}ms` }
  const parents = Array.from({ length: 1 + Math.floor(random.float() * 3) }, () => Math.floor(random.float() * i))
  return i === 0 ? job : { ...job, after: { jobs: [...new Set(parents)].map((parent) => `j${parent}`) } }
}

/** A job that was acknowledged, and those that it waits for. */
interface Acknowledged {
  jobId: string
  parents: string[]
}

/** Answers the jobs that were acknowledged. What a dying node was told may exist or not. */
async function createJobs(t: Fleet, random: Random): Promise<Acknowledged[]> {
  const acknowledged: Acknowledged[] = []
  const produce = async () => {
    while (acknowledged.length < RUNS) {
      try {
        const jobs = Array.from({ length: BATCH }, (_, i) => newJob(random, i))
        const created = await t.any(random).createMany(jobs)
        const ids = new Map(jobs.map(({ ref }, i) => [ref, created[i]?.jobId as string]))
        for (const { ref, after } of jobs)
          acknowledged.push({
            jobId: ids.get(ref) as string,
            parents: (after?.jobs ?? []).map((parent) => ids.get(parent) as string),
          })
      } catch (error) {
        const isExpected = error instanceof NodeDied || (error as { code?: string }).code === 'database_unavailable'
        if (!isExpected) throw error
      }
      await pause(800)
    }
  }
  await Promise.all([produce(), produce(), produce()])
  return acknowledged
}

async function wreak(t: Fleet, random: Random): Promise<void> {
  let stopped: BelfryNode | null = null
  for (let kill = 0; kill < KILLS; kill++) {
    await pause(500 + random.float() * 1_500)
    const others = t.nodes.filter((node) => node !== stopped)
    const victim = others[Math.floor(random.float() * others.length)] as BelfryNode
    if (kill === 2) {
      // Longer than its leases: it wakes up with attempts that others have performed meanwhile.
      stopped = victim
      victim.signal('SIGSTOP')
    } else {
      await victim.kill()
      t.replace(victim)
    }
    if (kill === 4) {
      await t.server.kill()
      await t.server.start()
    }
    if (kill === 6) stopped?.signal('SIGCONT')
  }
}

async function everythingFinished(t: Fleet): Promise<void> {
  const open = () =>
    t.server.query<{ open: number }>(
      'select ((select count(*) from belfry.runs) + (select count(*) from belfry.timers))::int as open',
    )
  await expect.poll(async () => (await open())[0]?.open, { interval: 250 }).toBe(0)
}

test('through kill -9 of every node and of PostgreSQL no run is lost and none is done twice', async () => {
  const t = await setup()
  const random = seededRandom(SEED)
  const recurring = await (t.nodes[0] as BelfryNode).createMany(
    Array.from({ length: 10 }, (_, i) => ({ queue: 'work', every: '1s', overlap: i % 2 ? 'skip' : 'allow', retry })),
  )
  const [acknowledged] = await Promise.all([createJobs(t, random), wreak(t, random)])
  const node = t.nodes[0] as BelfryNode
  await node.ready
  for (const { jobId } of recurring) await node.call('jobs.cancel', jobId, { running: 'finish' })
  await everythingFinished(t)

  expect(t.all.filter((one) => one.endedByItself)).toEqual([])
  const executions = await t.ledger.executions()
  expect(await audit(t.server.query.bind(t.server), 'belfry', executions)).toEqual([])
  for (const { jobId } of recurring)
    expect(await auditRecurring(t.server.query.bind(t.server), 'belfry', jobId, 1_000)).toEqual([])
  const attempts = await t.server.query<{ job_id: string; number: number }>(
    'select job_id, number from belfry.attempts where final and outcome = 1',
  )
  const succeeded = new Map(attempts.map(({ job_id, number }) => [job_id, number]))
  expect(acknowledged.filter(({ jobId }) => !succeeded.has(jobId))).toEqual([])
  const began = new Map<string, number>()
  const ended = new Map<string, number>()
  for (const { job_id, attempt, began_at, ended_at } of executions) {
    began.set(job_id, Math.min(Number(began_at), began.get(job_id) ?? Number.POSITIVE_INFINITY))
    if (attempt === succeeded.get(job_id)) ended.set(job_id, Number(ended_at))
  }
  const isTooEarly = ({ jobId, parents }: Acknowledged) =>
    parents.some((parent) => Number(began.get(jobId)) < Number(ended.get(parent)))
  expect(acknowledged.filter(({ parents }) => parents.length > 0).length).toBeGreaterThan(RUNS / 5)
  expect(acknowledged.filter(isTooEarly), 'jobs that ran before one they wait for').toEqual([])
  expect(await t.server.query('select * from belfry.dead_letters')).toEqual([])
  const [cut] = await t.server.query<{ count: number }>(
    'select count(*)::int as count from belfry.attempts where failure_class = 7',
  )
  expect(cut?.count, 'runs whose attempt was cut by a kill').toBeGreaterThan(0)
  if (process.env.BELFRY_CHAOS_SAY)
    console.log({ executions: executions.length, acknowledged: acknowledged.length, cut })
})
