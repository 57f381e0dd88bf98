import PgBoss from 'pg-boss'
import { connect, readNumber, waitUntilReached } from '../database.ts'
import { startWalMeter } from '../meter.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, mustEqual, type Setting, sized } from '../workload.ts'

/**
 * pg-boss with batches of 1,000 and several pollers. A poller would rest for at least half a second after each batch; it
 * is told to go on at once (`notifyWorker`), which is the fastest its own interface allows. Supervision and schedules are
 * off, so that nothing else runs beside the work.
 */
const BATCH = 1_000
/** All of these are tried in the warm-up; the measured run takes whichever was the fastest. */
const POLLERS = [2, 4, 8]
const DEADLINE_MS = 300_000
const COUNT_COMPLETED = `select count(*) from pgboss.job where name = $1 and state = 'completed'`

export async function preEnqueued(setting: Setting): Promise<Measurement[]> {
  const client = await connect(setting.databaseUrl)
  const boss = new PgBoss({
    connectionString: setting.databaseUrl,
    max: Math.max(...POLLERS) + 2,
    supervise: false,
    schedule: false,
    pollingIntervalSeconds: 0.5,
  })
  boss.on('error', (error) => console.error(error))
  await boss.start()

  async function drain(queue: string, jobs: number, pollers: number): Promise<{ rate: number; walBytes: number }> {
    await boss.createQueue(queue)
    for (let from = 0; from < jobs; from += 10_000) {
      const length = Math.min(10_000, jobs - from)
      await boss.insert(Array.from({ length }, (_, index) => ({ name: queue, data: { n: from + index } })))
    }
    await client.query('analyze pgboss.job')
    const tally = tallyUntil(jobs, DEADLINE_MS)
    const walBytes = await startWalMeter(client)
    const startedAt = performance.now()
    await Promise.all(Array.from({ length: pollers }, () => startPoller(boss, queue, tally.count)))
    await tally.all
    await waitUntilReached(() => readNumber(client, COUNT_COMPLETED, [queue]), jobs, {
      what: 'pg-boss, jobs completed',
      deadlineMs: 30_000,
    })
    const seconds = (performance.now() - startedAt) / 1_000
    mustEqual('pg-boss, jobs handled', tally.counted, jobs)
    await boss.offWork(queue)
    return { rate: jobs / seconds, walBytes: await walBytes() }
  }

  try {
    let best = { pollers: 0, rate: 0 }
    for (const pollers of POLLERS) {
      const { rate } = await drain(`warm-up-${pollers}`, 20_000, pollers)
      if (rate > best.rate) best = { pollers, rate }
    }
    const jobs = sized(setting, { quick: 100_000, full: 300_000 })
    const { rate, walBytes } = await drain('noop', jobs, best.pollers)
    return [
      { name: 'pre_enqueued', value: rate, unit: 'runs/s' },
      { name: 'pre_enqueued_wal', value: walBytes / jobs, unit: 'bytes/run' },
    ]
  } finally {
    await boss.stop({ graceful: false, wait: true })
    await client.end()
  }
}

async function startPoller(boss: PgBoss, queue: string, onJob: () => void): Promise<void> {
  let poller = ''
  poller = await boss.work(queue, { batchSize: BATCH }, async (jobs) => {
    for (const _ of jobs) onJob()
    if (poller) boss.notifyWorker(poller)
  })
}
