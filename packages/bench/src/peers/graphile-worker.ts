import { Logger, type Runner, run, runMigrations } from 'graphile-worker'
import pg from 'pg'
import { connect, readNumber, startWalMeter, waitUntilReached } from '../database.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, type Setting, sized } from '../workload.ts'

/**
 * graphile-worker with everything it has for speed: jobs fetched 500 at a time into the local queue, completions and
 * failures batched. Its clock starts with the first task, so that starting a runner is not held against it. Finished jobs
 * are deleted without a trace: it does less than Belfry here.
 */
const LOCAL_QUEUE = 500
/** All of these are tried in the warm-up; the measured run takes whichever was the fastest. */
const CONCURRENCIES = [10, 24, 96]
const CHUNK = 10_000
const DEADLINE_MS = 300_000
const COUNT_LEFT = 'select count(*) from graphile_worker._private_jobs'

export async function preEnqueued(setting: Setting): Promise<Measurement[]> {
  const client = await connect(setting.databaseUrl)
  const pool = new pg.Pool({ connectionString: setting.databaseUrl, max: 10 })
  pool.on('error', (error) => console.error(error))
  try {
    await runMigrations({ pgPool: pool })
    let best = { concurrency: 0, rate: 0 }
    for (const concurrency of CONCURRENCIES) {
      const { rate } = await drain({ client, pool, jobs: 20_000, concurrency })
      if (rate > best.rate) best = { concurrency, rate }
    }
    const jobs = sized(setting, { quick: 150_000, full: 400_000 })
    const { rate, walBytes } = await drain({ client, pool, jobs, concurrency: best.concurrency })
    return [
      { name: 'pre_enqueued', value: rate, unit: 'runs/s' },
      { name: 'pre_enqueued_wal', value: walBytes / jobs, unit: 'bytes/run' },
    ]
  } finally {
    await pool.end()
    await client.end()
  }
}

async function drain(work: {
  client: pg.Client
  pool: pg.Pool
  jobs: number
  concurrency: number
}): Promise<{ rate: number; walBytes: number }> {
  await enqueue(work.client, work.jobs)
  await work.client.query('analyze graphile_worker._private_jobs')
  const tally = tallyUntil(work.jobs, DEADLINE_MS)
  const walBytes = await startWalMeter(work.client)
  const runner = await startRunner(work.pool, work.concurrency, tally.count)
  try {
    await tally.all
    await waitUntilReached(async () => -(await readNumber(work.client, COUNT_LEFT)), 0, {
      what: 'graphile-worker, jobs completed',
      deadlineMs: 30_000,
    })
    const seconds = (performance.now() - tally.firstAt) / 1_000
    if (tally.counted !== work.jobs) throw new Error(`graphile-worker ran ${tally.counted} tasks for ${work.jobs} jobs`)
    return { rate: work.jobs / seconds, walBytes: await walBytes() }
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

function startRunner(pool: pg.Pool, concurrency: number, onTask: () => void): Promise<Runner> {
  return run({
    preset: {
      worker: {
        concurrentJobs: concurrency,
        localQueue: { size: LOCAL_QUEUE },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger: new Logger(() => () => {}),
      },
    },
    pgPool: pool,
    noHandleSignals: true,
    taskList: { noop: async () => onTask() },
  })
}
