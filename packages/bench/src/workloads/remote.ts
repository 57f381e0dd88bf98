import { CONCURRENCY, checkHistory, countAttempts, createAll, DEADLINE_MS, settle, waitForHistory } from '../belfry.ts'
import { costs, type Spent, startMeter } from '../meter.ts'
import { type Remote, withRemote } from '../remote.ts'
import { type Measurement, type Setting, sized, type Workload } from '../workload.ts'

const WARM_UP = { batches: 20_000, singles: 2_000 }
const CONNECTIONS = 256

export const remote: Workload = {
  name: 'remote',
  summary:
    'no-op runs leased over the API by a worker in another process: in batches, and one by one on 256 connections, in one call for each or in two',
  rounds: { quick: 2, full: 3 },
  subjects: [{ name: 'belfry', perform: measure }],
}

function measure(setting: Setting): Promise<Measurement[]> {
  return withRemote(setting, async (remote) => {
    const batches = sized(setting, { quick: 200_000, full: 400_000 })
    const singles = sized(setting, { quick: 20_000, full: 100_000 })
    await drain(remote, 'warm-up', WARM_UP.batches, serve)
    const batched = await drain(remote, 'batches', batches, serve)
    await drain(remote, 'warm-up-singles', WARM_UP.singles, oneByOne(true))
    const single = await drain(remote, 'singles', singles, oneByOne(true))
    const apart = await drain(remote, 'singles-apart', singles, oneByOne(false))
    await checkHistory(remote.client, WARM_UP.batches + batches + WARM_UP.singles + 2 * singles)
    return [
      ...told('remote_batches', batched, batches),
      ...told('remote_singles', single, singles),
      ...told('remote_singles_in_two_calls', apart, singles),
    ]
  })
}

interface Drained {
  seconds: number
  /** By the node and the database. */
  spent: Spent
  workerUs: number
}

type Perform = (remote: Remote, queue: string, runs: number) => Promise<void>

/** Fills a queue that nobody serves yet, then has it served, and times it until everything is in history. */
async function drain(remote: Remote, queue: string, runs: number, perform: Perform): Promise<Drained> {
  const { belfry, client, workers } = remote
  const before = await countAttempts(client)
  await createAll(belfry, runs, (n) => ({ queue, payload: { n } }))
  await settle(client)
  const meter = await startMeter(client)
  const startedAt = performance.now()
  await perform(remote, queue, runs)
  await waitForHistory(client, before + runs)
  const seconds = (performance.now() - startedAt) / 1_000
  const spent = await meter()
  const { cpuUs: workerUs } = await workers.ask<{ cpuUs: number }>({ kind: 'stop' })
  return { seconds, spent, workerUs }
}

async function serve({ workers, api }: Remote, queue: string, runs: number): Promise<void> {
  await workers.ask({ kind: 'serve', api, queue, runs, concurrency: CONCURRENCY, deadlineMs: DEADLINE_MS })
}

const oneByOne =
  (inOneCall: boolean): Perform =>
  async ({ workers, api }, queue, runs) => {
    await workers.ask({
      ...{ kind: 'one_by_one', api, queue, runs, inOneCall },
      ...{ connections: CONNECTIONS, deadlineMs: DEADLINE_MS },
    })
  }

function told(name: string, drained: Drained, runs: number): Measurement[] {
  const { seconds, spent, workerUs } = drained
  return [
    { name, value: runs / seconds, unit: 'runs/s' },
    ...costs(name, spent, runs),
    { name: `${name}_worker_cpu`, value: workerUs / runs, unit: 'µs/run' },
  ]
}
