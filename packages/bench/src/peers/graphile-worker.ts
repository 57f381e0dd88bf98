import type pg from 'pg'
import { connect, readNumber, waitUntilReached } from '../database.ts'
import { costs, type Spent, startMeter } from '../meter.ts'
import { measureSteady, Starts } from '../steady-load.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, type Setting, sized } from '../workload.ts'
import { importPeer } from './installed.ts'

interface GraphileWorker {
  Logger: new (factory: () => () => void) => object
  run(options: {
    preset: { worker: { connectionString: string; logger: object } & WorkerOptions }
    noHandleSignals: true
    taskList: Record<string, (payload: { n: number }) => Promise<void>>
  }): Promise<Runner>
  runMigrations(options: { connectionString: string }): Promise<void>
  makeWorkerUtils(options: { connectionString: string; logger: object }): Promise<WorkerUtils>
}

interface WorkerOptions {
  concurrentJobs: number
  localQueue: { size: number; refetchDelay?: { durationMs: number; threshold: number; maxAbortThreshold: number } }
  completeJobBatchDelay: number
  failJobBatchDelay: number
}

interface Runner {
  stop(): Promise<void>
}

/** Creates over connections of its own, which a runner would share with what it fetches and completes. */
interface WorkerUtils {
  addJob(task: string, payload: { n: number }): Promise<unknown>
  release(): Promise<void>
}

/**
 * graphile-worker with everything it has for speed: jobs fetched hundreds at a time into the local queue, completions and
 * failures batched. Its clock starts with the first task, so that starting a runner is not held against it. Finished jobs
 * are deleted without a trace: it does less than Belfry here.
 */
const AT_ONCE = { completeJobBatchDelay: 0, failJobBatchDelay: 0 }
/** What its own guide recommends for speed. */
const RECOMMENDED: WorkerOptions = { concurrentJobs: 24, localQueue: { size: 500 }, ...AT_ONCE }
/** All of these are tried in the warm-up; the measured run takes whichever was the fastest. */
const TUNINGS: readonly WorkerOptions[] = [
  RECOMMENDED,
  { concurrentJobs: 96, localQueue: { size: 500 }, ...AT_ONCE },
  { concurrentJobs: 96, localQueue: { size: 2_000 }, ...AT_ONCE },
]
/** Under a steady load: jobs that start at once, or the cheapest it can do by letting them wait for a tenth of a second. */
const STEADY = {
  prompt: RECOMMENDED,
  thrifty: {
    concurrentJobs: 24,
    localQueue: { size: 500, refetchDelay: { durationMs: 100, threshold: 499, maxAbortThreshold: Infinity } },
    completeJobBatchDelay: 250,
    failJobBatchDelay: 250,
  },
}
const CHUNK = 10_000
const DEADLINE_MS = 300_000
const COUNT_LEFT = 'select count(*) from graphile_worker._private_jobs'

export async function preEnqueued(setting: Setting): Promise<Measurement[]> {
  const client = await connect(setting.databaseUrl)
  const worker = await importPeer<GraphileWorker>('graphile-worker')
  const place = { worker, client, databaseUrl: setting.databaseUrl }
  try {
    await worker.runMigrations({ connectionString: setting.databaseUrl })
    let best = { tuning: RECOMMENDED, rate: 0 }
    for (const tuning of TUNINGS) {
      const { rate } = await drain({ ...place, jobs: 20_000, tuning })
      if (rate > best.rate) best = { tuning, rate }
    }
    const jobs = sized(setting, { quick: 150_000, full: 400_000 })
    const { rate, spent } = await drain({ ...place, jobs, tuning: best.tuning })
    return [{ name: 'pre_enqueued', value: rate, unit: 'runs/s' }, ...costs('pre_enqueued', spent, jobs)]
  } finally {
    await client.end()
  }
}

export async function steady(setting: Setting, perSecond: number, tuning: keyof typeof STEADY): Promise<Measurement[]> {
  const client = await connect(setting.databaseUrl)
  const worker = await importPeer<GraphileWorker>('graphile-worker')
  const oneOffs = new Starts()
  await worker.runMigrations({ connectionString: setting.databaseUrl })
  const utils = await worker.makeWorkerUtils({ connectionString: setting.databaseUrl, logger: quiet(worker) })
  const runner = await startRunner(worker, setting.databaseUrl, STEADY[tuning], (n) => oneOffs.begun(n))
  try {
    return await measureSteady('steady', {
      ...{ setting, client, oneOffs, runsPerSecond: perSecond, createsPerSecond: perSecond },
      create: (n) => utils.addJob('noop', { n }),
      check: () => waitUntilNoneLeft(client),
    })
  } finally {
    await runner.stop()
    await utils.release()
    await client.end()
  }
}

async function drain(work: {
  worker: GraphileWorker
  client: pg.Client
  databaseUrl: string
  jobs: number
  tuning: WorkerOptions
}): Promise<{ rate: number; spent: Spent }> {
  await enqueue(work.client, work.jobs)
  await work.client.query('analyze graphile_worker._private_jobs')
  const tally = tallyUntil(work.jobs, DEADLINE_MS)
  const meter = await startMeter(work.client)
  const runner = await startRunner(work.worker, work.databaseUrl, work.tuning, tally.count)
  try {
    await tally.all
    await waitUntilNoneLeft(work.client)
    const seconds = (performance.now() - tally.firstAt) / 1_000
    const spent = await meter()
    if (tally.counted !== work.jobs) throw new Error(`graphile-worker ran ${tally.counted} tasks for ${work.jobs} jobs`)
    return { rate: work.jobs / seconds, spent }
  } finally {
    await runner.stop()
  }
}

async function enqueue(client: pg.Client, jobs: number): Promise<void> {
  for (let from = 0; from < jobs; from += CHUNK) {
    await client.query(
      `select graphile_worker.add_jobs(array(
         select row('noop', json_build_object('n', i), null, null, null, null, null, null)::graphile_worker.job_spec
         from generate_series($1::int, $2::int) i))`,
      [from + 1, Math.min(jobs, from + CHUNK)],
    )
  }
}

function waitUntilNoneLeft(client: pg.Client): Promise<void> {
  return waitUntilReached(async () => -(await readNumber(client, COUNT_LEFT)), 0, {
    what: 'graphile-worker, jobs completed',
    deadlineMs: 30_000,
  })
}

const quiet = ({ Logger }: GraphileWorker): object => new Logger(() => () => {})

function startRunner(
  worker: GraphileWorker,
  connectionString: string,
  tuning: WorkerOptions,
  onTask: (n: number) => void,
): Promise<Runner> {
  return worker.run({
    preset: { worker: { connectionString, ...tuning, logger: quiet(worker) } },
    noHandleSignals: true,
    taskList: { noop: async ({ n }) => onTask(n) },
  })
}
