import { connect, readNumber, waitUntilReached } from '../database.ts'
import { costs, type Spent, startMeter } from '../meter.ts'
import { measureSteady, Starts } from '../steady-load.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, mustEqual, type Setting, sized } from '../workload.ts'
import { importPeer } from './installed.ts'

interface PgBossModule {
  PgBoss: new (options: {
    connectionString: string
    max?: number
    supervise?: boolean
    schedule?: boolean
    useListenNotify?: boolean
  }) => PgBoss
}

interface PgBoss {
  on(event: 'error', listener: (error: unknown) => void): void
  start(): Promise<unknown>
  createQueue(name: string, options?: { notify: boolean }): Promise<void>
  insert(name: string, jobs: { data: Payload }[]): Promise<unknown>
  send(name: string, data: Payload): Promise<unknown>
  work(name: string, options: WorkOptions, handler: (jobs: { data: Payload }[]) => Promise<void>): Promise<string>
  offWork(name: string): Promise<void>
  stop(options: { graceful: boolean }): Promise<void>
}

interface WorkOptions {
  batchSize: number
  localConcurrency: number
  pollingIntervalSeconds: number
  /** A poller does not rest after a full batch. */
  burstWhenBatchFull: true
}

interface Payload {
  n: number
}

/**
 * pg-boss with batches of 1,000 and several pollers, none of which rests as long as its batches are full. Supervision and
 * schedules are off, so that nothing else runs beside the work.
 */
const BATCH = 1_000
/** All of these are tried in the warm-up; the measured run takes whichever was the fastest. */
const POLLERS = [2, 4, 8]
/** The least that it allows. */
const POLLING = { pollingIntervalSeconds: 0.5, burstWhenBatchFull: true } as const
const DEADLINE_MS = 300_000
const COUNT_COMPLETED = `select count(*) from pgboss.job where name = $1 and state = 'completed'`

export async function preEnqueued(setting: Setting): Promise<Measurement[]> {
  const client = await connect(setting.databaseUrl)
  const boss = await startBoss(setting, { max: Math.max(...POLLERS) + 2, supervise: false, schedule: false })

  async function drain(queue: string, jobs: number, pollers: number): Promise<{ rate: number; spent: Spent }> {
    await boss.createQueue(queue)
    for (let from = 0; from < jobs; from += 10_000) {
      const length = Math.min(10_000, jobs - from)
      await boss.insert(
        queue,
        Array.from({ length }, (_, index) => ({ data: { n: from + index } })),
      )
    }
    await client.query('analyze pgboss.job')
    const tally = tallyUntil(jobs, DEADLINE_MS)
    const meter = await startMeter(client)
    const startedAt = performance.now()
    await boss.work(queue, { ...POLLING, batchSize: BATCH, localConcurrency: pollers }, async (batch) => {
      for (const _ of batch) tally.count()
    })
    await tally.all
    await waitUntilReached(() => readNumber(client, COUNT_COMPLETED, [queue]), jobs, {
      what: 'pg-boss, jobs completed',
      deadlineMs: 30_000,
    })
    const seconds = (performance.now() - startedAt) / 1_000
    const spent = await meter()
    mustEqual('pg-boss, jobs handled', tally.counted, jobs)
    await boss.offWork(queue)
    return { rate: jobs / seconds, spent }
  }

  try {
    let best = { pollers: 0, rate: 0 }
    for (const pollers of POLLERS) {
      const { rate } = await drain(`warm-up-${pollers}`, 20_000, pollers)
      if (rate > best.rate) best = { pollers, rate }
    }
    const jobs = sized(setting, { quick: 100_000, full: 300_000 })
    const { rate, spent } = await drain('noop', jobs, best.pollers)
    return [{ name: 'pre_enqueued', value: rate, unit: 'runs/s' }, ...costs('pre_enqueued', spent, jobs)]
  } finally {
    await boss.stop({ graceful: false })
    await client.end()
  }
}

/** Jobs that start at once, as the database tells of each, or the cheapest it can do: polls alone. */
export async function steady(
  setting: Setting,
  perSecond: number,
  tuning: 'prompt' | 'thrifty',
): Promise<Measurement[]> {
  const client = await connect(setting.databaseUrl)
  const isTold = tuning === 'prompt'
  const boss = await startBoss(setting, { useListenNotify: isTold })
  // Creates over connections of its own, as the others do.
  const sender = await startBoss(setting, { supervise: false, schedule: false })
  const oneOffs = new Starts()
  try {
    await boss.createQueue('noop', { notify: isTold })
    await boss.work('noop', { ...POLLING, batchSize: BATCH, localConcurrency: 1 }, async (batch) => {
      for (const { data } of batch) oneOffs.begun(data.n)
    })
    return await measureSteady('steady', {
      ...{ setting, client, oneOffs, runsPerSecond: perSecond, createsPerSecond: perSecond },
      create: (n) => sender.send('noop', { n }),
      check: (begun) =>
        waitUntilReached(() => readNumber(client, COUNT_COMPLETED, ['noop']), begun, {
          what: 'pg-boss, jobs completed',
          deadlineMs: 30_000,
        }),
    })
  } finally {
    await sender.stop({ graceful: false })
    await boss.stop({ graceful: false })
    await client.end()
  }
}

async function startBoss(
  { databaseUrl }: Setting,
  options: Omit<ConstructorParameters<PgBossModule['PgBoss']>[0], 'connectionString'>,
): Promise<PgBoss> {
  const { PgBoss } = await importPeer<PgBossModule>('pg-boss')
  const boss = new PgBoss({ connectionString: databaseUrl, ...options })
  boss.on('error', (error) => console.error(error))
  await boss.start()
  return boss
}
