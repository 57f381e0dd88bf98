import type { Belfry } from '@belfry/engine'
import type pg from 'pg'
import { checkHistory, createAll, startBelfry, table, waitForHistory } from '../belfry.ts'
import { connect, readNumber } from '../database.ts'
import { measureSteady, Starts } from '../steady-load.ts'
import { type Measurement, mustEqual, type Setting, type Workload } from '../workload.ts'

const PER_SECOND = 1_000
const rateOf = ({ scale }: Setting): number => Math.round(PER_SECOND * scale)
const CONCURRENCY = 100
/** Each job fires once a minute, so this many fire half of the runs. */
const PERIOD_MS = 60_000
const recurringJobs = (setting: Setting): number => Math.round((rateOf(setting) / 2) * (PERIOD_MS / 1_000))
/** Until the first of them fires; loading them takes a third of this. */
const LOADING_MS = 30_000
const SUCCEEDED = `select count(*) from ${table('attempts')} where outcome = 1`
const DISTINCT = `select count(*) from (select distinct job_id, nominal_at from ${table('attempts')} where outcome = 1) r`

export const steady: Workload = {
  name: 'steady',
  summary:
    '1,000 immediate one-offs a second, created and handled in one process: what each costs and how late it starts',
  rounds: { quick: 1, full: 3 },
  subjects: [
    { name: 'belfry', perform: measureOneOffs },
    { name: 'belfry, half recurring', perform: measureHalfRecurring },
    {
      name: 'graphile-worker',
      perform: async (setting) =>
        (await import('../peers/graphile-worker.ts')).steady(setting, rateOf(setting), 'prompt'),
    },
    {
      name: 'graphile-worker, thrifty',
      perform: async (setting) =>
        (await import('../peers/graphile-worker.ts')).steady(setting, rateOf(setting), 'thrifty'),
    },
    {
      name: 'pg-boss',
      perform: async (setting) => (await import('../peers/pg-boss.ts')).steady(setting, rateOf(setting), 'prompt'),
    },
    {
      name: 'pg-boss, thrifty',
      perform: async (setting) => (await import('../peers/pg-boss.ts')).steady(setting, rateOf(setting), 'thrifty'),
    },
  ],
}

function measureOneOffs(setting: Setting): Promise<Measurement[]> {
  return withBelfry(setting, ({ client, oneOffs, create }) =>
    measureSteady('steady', {
      ...{ setting, client, oneOffs, create },
      runsPerSecond: rateOf(setting),
      createsPerSecond: rateOf(setting),
      async check(begun) {
        await waitForHistory(client, begun)
        await checkHistory(client, begun)
      },
    }),
  )
}

function measureHalfRecurring(setting: Setting): Promise<Measurement[]> {
  return withBelfry(setting, async ({ belfry, client, oneOffs, create }) => {
    const recurring = new Starts()
    belfry.handle('recurring', async ({ nominalAt }) => recurring.late(Date.now() - nominalAt.getTime()), {
      concurrency: CONCURRENCY,
    })
    const jobs = recurringJobs(setting)
    const firstAt = Date.now() + LOADING_MS
    await createAll(belfry, jobs, (index) => ({
      queue: 'recurring',
      payload: { n: index },
      every: 'PT1M',
      startAt: new Date(firstAt + Math.floor((index / jobs) * PERIOD_MS)).toISOString(),
    }))
    mustEqual('recurring runs begun before all were loaded', recurring.counted, 0)
    await new Promise((wake) => setTimeout(wake, firstAt - Date.now()))
    return measureSteady('steady', {
      ...{ setting, client, oneOffs, recurring, create },
      runsPerSecond: rateOf(setting),
      createsPerSecond: rateOf(setting) / 2,
      async check() {
        // They go on firing: only once the node has stopped can begun and done be compared. What it had leased and not
        // begun it gave back, which stands in history as released.
        await belfry.stop()
        const begun = oneOffs.counted + recurring.counted
        mustEqual('Belfry, runs that succeeded', await readNumber(client, SUCCEEDED), begun)
        mustEqual('Belfry, distinct runs that succeeded', await readNumber(client, DISTINCT), begun)
      },
    })
  })
}

interface Served {
  belfry: Belfry
  client: pg.Client
  oneOffs: Starts
  create(index: number): Promise<unknown>
}

async function withBelfry<T>(setting: Setting, use: (served: Served) => Promise<T>): Promise<T> {
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  const oneOffs = new Starts()
  belfry.handle('one-off', async ({ payload }) => oneOffs.begun((payload as { n: number }).n), {
    concurrency: CONCURRENCY,
  })
  const create = (n: number) => belfry.jobs.create({ queue: 'one-off', payload: { n } })
  try {
    return await use({ belfry, client, oneOffs, create })
  } finally {
    await belfry.stop()
    await client.end()
  }
}
