import { Logger, type Runner, run, runMigrations } from 'graphile-worker'
import type pg from 'pg'
import { connect, readNumber, waitUntilReached } from '../database.ts'
import { startWalMeter } from '../meter.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, type Setting, sized } from '../workload.ts'

/**
 * graphile-worker with everything it has for speed: jobs fetched hundreds at a time into the local queue, completions and
 * failures batched. Its clock starts with the first task, so that starting a runner is not held against it. Finished jobs
 * are deleted without a trace: it does less than Belfry here.
 */
/** What its own guide recommends for speed. */
const DEFAULT_TUNING: Tuning = { concurrency: 24, localQueue: 500 }
/** All of these are tried in the warm-up; the measured run takes whichever was the fastest. */
const TUNINGS: readonly Tuning[] = [
  DEFAULT_TUNING,
  { concurrency: 96, localQueue: 500 },
  { concurrency: 96, localQueue: 2_000 },
]
const CHUNK = 10_000
const DEADLINE_MS = 300_000
const COUNT_LEFT = 'select count(*) from graphile_worker._private_jobs'

interface Tuning {
  concurrency: number
  localQueue: number
}

export async function preEnqueued(setting: Setting): Promise<Measurement[]> {
  const client = await connect(setting.databaseUrl)
  const place = { client, databaseUrl: setting.databaseUrl }
  try {
    await runMigrations({ connectionString: setting.databaseUrl })
    let best = { tuning: DEFAULT_TUNING, rate: 0 }
    for (const tuning of TUNINGS) {
      const { rate } = await drain({ ...place, jobs: 20_000, tuning })
      if (rate > best.rate) best = { tuning, rate }
    }
    const jobs = sized(setting, { quick: 150_000, full: 400_000 })
    const { rate, walBytes } = await drain({ ...place, jobs, tuning: best.tuning })
    return [
      { name: 'pre_enqueued', value: rate, unit: 'runs/s' },
      { name: 'pre_enqueued_wal', value: walBytes / jobs, unit: 'bytes/run' },
    ]
  } finally {
    await client.end()
  }
}

async function drain(work: {
  client: pg.Client
  databaseUrl: string
  jobs: number
  tuning: Tuning
}): Promise<{ rate: number; walBytes: number }> {
  await enqueue(work.client, work.jobs)
  await work.client.query('analyze graphile_worker._private_jobs')
  const tally = tallyUntil(work.jobs, DEADLINE_MS)
  const walBytes = await startWalMeter(work.client)
  const runner = await startRunner(work.databaseUrl, work.tuning, tally.count)
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

function startRunner(databaseUrl: string, tuning: Tuning, onTask: () => void): Promise<Runner> {
  return run({
    preset: {
      worker: {
        connectionString: databaseUrl,
        concurrentJobs: tuning.concurrency,
        localQueue: { size: tuning.localQueue },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger: new Logger(() => () => {}),
      },
    },
    noHandleSignals: true,
    taskList: { noop: async () => onTask() },
  })
}
