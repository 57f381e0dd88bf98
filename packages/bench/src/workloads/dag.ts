import type { Belfry, JobOfCall } from '@belfry/engine'
import {
  CONCURRENCY,
  checkHistory,
  countAttempts,
  DEADLINE_MS,
  settle,
  startBelfry,
  waitForHistory,
} from '../belfry.ts'
import { connect } from '../database.ts'
import { costs, startMeter } from '../meter.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, mustEqual, type Setting, type Workload } from '../workload.ts'

const JOBS = 10_000
const WARM_UP = 2_000
const MOST_PARENTS = 5

/** A random graph of 10,000 jobs in one call, from its acknowledgement until all of them are in history. */
export const dag: Workload = {
  name: 'dag',
  summary: 'a random graph of 10,000 jobs, created in one call, in the order of its edges',
  rounds: { quick: 2, full: 3 },
  subjects: [{ name: 'belfry', perform: measureDag }],
}

async function measureDag(setting: Setting): Promise<Measurement[]> {
  const jobs = Math.max(100, Math.round(JOBS * setting.scale))
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  const performed = new Set<number>()
  const parentsOf = new Map<number, readonly number[]>()
  let tally = tallyUntil(1, DEADLINE_MS)
  let outOfOrder = 0
  belfry.handle(
    'graph',
    async (run) => {
      const n = run.payload as number
      if (parentsOf.get(n)?.some((parent) => !performed.has(parent))) outOfOrder++
      performed.add(n)
      tally.count()
    },
    { concurrency: CONCURRENCY },
  )
  const through = async (first: number, count: number) => {
    const graph = randomGraph(first, count)
    for (const { n, parents } of graph) parentsOf.set(n, parents)
    const before = await countAttempts(client)
    await settle(client)
    tally = tallyUntil(count, DEADLINE_MS)
    const meter = await startMeter(client)
    const createSeconds = await create(belfry, graph)
    const startedAt = performance.now()
    await tally.all
    await waitForHistory(client, before + count)
    const seconds = (performance.now() - startedAt) / 1_000
    const spent = await meter()
    mustEqual('Belfry, handlers called', tally.counted, count)
    return { createSeconds, seconds, spent, edges: edgesOf(graph) }
  }
  try {
    await through(0, WARM_UP)
    const { createSeconds, seconds, spent, edges } = await through(WARM_UP, jobs)
    await checkHistory(client, WARM_UP + jobs)
    mustEqual('jobs that ran before one they wait for', outOfOrder, 0)
    return [
      { name: 'dag', value: jobs / (createSeconds + seconds), unit: 'jobs/s' },
      { name: 'dag_after_create', value: jobs / seconds, unit: 'jobs/s' },
      { name: 'dag_create', value: jobs / createSeconds, unit: 'jobs/s' },
      { name: 'dag_edges', value: edges / jobs, unit: 'edges/job' },
      ...costs('dag', spent, jobs),
    ]
  } finally {
    await belfry.stop()
    await client.end()
  }
}

interface Node {
  n: number
  parents: readonly number[]
}

/** Each job waits for up to five random ones before it; one in twenty for none. */
function randomGraph(first: number, count: number): Node[] {
  return Array.from({ length: count }, (_, i) => {
    const most = i === 0 || Math.random() < 0.05 ? 0 : 1 + Math.floor(Math.random() * MOST_PARENTS)
    const parents = new Set(Array.from({ length: most }, () => first + Math.floor(Math.random() * i)))
    return { n: first + i, parents: [...parents] }
  })
}

const edgesOf = (graph: readonly Node[]): number => graph.reduce((sum, { parents }) => sum + parents.length, 0)

async function create(belfry: Belfry, graph: readonly Node[]): Promise<number> {
  const jobs = graph.map(
    ({ n, parents }): JobOfCall => ({
      ref: `job-${n}`,
      queue: 'graph',
      payload: n,
      ...(parents.length === 0 ? {} : { after: { jobs: parents.map((parent) => `job-${parent}`) } }),
    }),
  )
  const startedAt = performance.now()
  await belfry.jobs.createMany(jobs)
  return (performance.now() - startedAt) / 1_000
}
