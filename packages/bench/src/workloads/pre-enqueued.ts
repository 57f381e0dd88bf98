import type { Belfry } from '@belfry/engine'
import type pg from 'pg'
import {
  CONCURRENCY,
  checkHistory,
  countAttempts,
  createAll,
  DEADLINE_MS,
  settle,
  startBelfry,
  waitForHistory,
} from '../belfry.ts'
import { connect } from '../database.ts'
import { costs, type Spent, startMeter } from '../meter.ts'
import { tallyUntil } from '../tally.ts'
import { type Measurement, mustEqual, type Setting, sized, type Workload } from '../workload.ts'

const WARM_UP = 20_000

export const preEnqueued: Workload = {
  name: 'pre-enqueued',
  summary: 'no-op runs that wait already when the handler comes, against the claim floor and the peers',
  rounds: { quick: 2, full: 3 },
  subjects: [
    {
      name: 'floor',
      perform: async (setting) => (await import('../floors.ts')).measureFloor('claim', 'pre_enqueued', setting),
    },
    { name: 'belfry', perform: (setting) => measurePreEnqueued('pre_enqueued', { n: 1 }, setting) },
    {
      name: 'graphile-worker',
      perform: async (setting) => (await import('../peers/graphile-worker.ts')).preEnqueued(setting),
    },
    { name: 'pg-boss', perform: async (setting) => (await import('../peers/pg-boss.ts')).preEnqueued(setting) },
    { name: 'bullmq', perform: async (setting) => (await import('../peers/bullmq.ts')).preEnqueued(setting) },
  ],
}

export async function measurePreEnqueued(name: string, payload: unknown, setting: Setting): Promise<Measurement[]> {
  const runs = sized(setting, { quick: 200_000, full: 400_000 })
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  try {
    await drain({ belfry, client, queue: 'warm-up', runs: WARM_UP, payload })
    const { seconds, spent } = await drain({ belfry, client, queue: 'noop', runs, payload })
    await checkHistory(client, WARM_UP + runs)
    return [{ name, value: runs / seconds, unit: 'runs/s' }, ...costs(name, spent, runs)]
  } finally {
    await belfry.stop()
    await client.end()
  }
}

/** Fills a queue that nobody serves yet, then serves it, and times it until everything is in history. */
export async function drain(work: {
  belfry: Belfry
  client: pg.Client
  queue: string
  runs: number
  payload: unknown
}): Promise<{ seconds: number; spent: Spent }> {
  const before = await countAttempts(work.client)
  await createAll(work.belfry, work.runs, () => ({ queue: work.queue, payload: work.payload }))
  await settle(work.client)
  const tally = tallyUntil(work.runs, DEADLINE_MS)
  const meter = await startMeter(work.client)
  const startedAt = performance.now()
  work.belfry.handle(work.queue, async () => tally.count(), { concurrency: CONCURRENCY })
  await tally.all
  await waitForHistory(work.client, before + work.runs)
  const seconds = (performance.now() - startedAt) / 1_000
  const spent = await meter()
  mustEqual('Belfry, handlers called', tally.counted, work.runs)
  return { seconds, spent }
}
