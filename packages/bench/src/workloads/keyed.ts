import {
  CONCURRENCY,
  checkHistory,
  countAttempts,
  createAll,
  DEADLINE_MS,
  type JobInput,
  settle,
  startBelfry,
  waitForHistory,
} from '../belfry.ts'
import { connect } from '../database.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, mustEqual, type Setting, sized, type Workload } from '../workload.ts'

const WARM_UP = 20_000
const KEYS = 1_000
const LIMIT = 10

/** The same no-op runs with a limit of their own on every one of them, and without. */
export const keyed: Workload = {
  name: 'keyed',
  summary: `no-op runs of ${KEYS} keys, no more than ${LIMIT} of each at a time, against the same runs without keys`,
  rounds: { quick: 2, full: 3 },
  subjects: [
    { name: 'without keys', perform: (setting) => measure(setting, () => ({})) },
    {
      name: 'with keys',
      perform: (setting) =>
        measure(setting, (index) => ({ concurrency: { key: `customer-${index % KEYS}`, limit: LIMIT } })),
    },
  ],
}

async function measure(setting: Setting, limitOf: (index: number) => Partial<JobInput>): Promise<Measurement[]> {
  const runs = sized(setting, { quick: 100_000, full: 200_000 })
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  const drain = async (queue: string, count: number): Promise<{ created: number; performed: number }> => {
    const before = await countAttempts(client)
    const created = await createAll(belfry, count, (index) => ({ queue, payload: { n: 1 }, ...limitOf(index) }))
    await settle(client)
    const tally = tallyUntil(count, DEADLINE_MS)
    const startedAt = performance.now()
    belfry.handle(queue, async () => tally.count(), { concurrency: CONCURRENCY })
    await tally.all
    await waitForHistory(client, before + count)
    mustEqual('Belfry, handlers called', tally.counted, count)
    return { created, performed: count / ((performance.now() - startedAt) / 1_000) }
  }
  try {
    await drain('warm-up', WARM_UP)
    const { created, performed } = await drain('noop', runs)
    await checkHistory(client, WARM_UP + runs)
    return [
      { name: 'keyed', value: performed, unit: 'runs/s' },
      { name: 'keyed_create', value: created, unit: 'jobs/s' },
    ]
  } finally {
    await belfry.stop()
    await client.end()
  }
}
