import { checkHistory, createAll, settle, startBelfry, waitForHistory } from '../belfry.ts'
import { connect } from '../database.ts'
import { percentile } from '../statistics.ts'
import { type Measurement, type Setting, sized, type Workload } from '../workload.ts'

const QUEUE = 'shared'
const BACKLOG = { quick: 20_000, full: 100_000 }
const OTHERS = 9
const EVERY_MS = 100
/** The work of a handler, and how many there are: so many that it is slots that are scarce, not the processor. */
const WORK_MS = 10
const CONCURRENCY = 40
/** What one sees of nine that start one run every 100 ms. */
const ALONE_MS = { quick: 4_000, full: 15_000 }
const WARM_UP_MS = 1_000

export const fairness: Workload = {
  name: 'fairness',
  summary: 'nine tenants start a run every 100 ms each, alone and beside one that has enqueued a hundred thousand',
  rounds: { quick: 1, full: 3 },
  subjects: [{ name: 'belfry', perform: measure }],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  let latencies: number[] = []
  let left = 0
  let drained: () => void = () => {}
  const others = Array.from({ length: OTHERS }, (_, n) => `other-${n}`)
  let created = 0
  /** Until it is over: each tenant at times of its own. */
  const startOthers = async (over: Promise<void>) => {
    let isOver = false
    const ended = over.then(() => {
      isOver = true
    })
    const creates: Promise<unknown>[] = []
    const one = async (tenant: string) => {
      await pause(Math.random() * EVERY_MS)
      while (!isOver) {
        creates.push(belfry.jobs.create({ tenant, queue: QUEUE, payload: { at: performance.now() } }))
        created++
        await pause(EVERY_MS)
      }
    }
    await Promise.all([ended, ...others.map(one)])
    await Promise.all(creates)
  }
  try {
    await belfry.shareQueue(QUEUE)
    for (const name of ['greedy', ...others]) await belfry.admin.tenants.create({ name }, 'bench')
    belfry.handle(
      QUEUE,
      async (run) => {
        const { at } = run.payload as { at?: number }
        if (at !== undefined) latencies.push(performance.now() - at)
        await pause(WORK_MS)
        if (at === undefined && --left === 0) drained()
      },
      { concurrency: CONCURRENCY },
    )
    await startOthers(pause(WARM_UP_MS))
    await waitForHistory(client, created)
    latencies = []
    await startOthers(pause(ALONE_MS[setting.pace]))
    await waitForHistory(client, created)
    const alone = latencies
    const count = sized(setting, BACKLOG)
    left = count
    const isDrained = new Promise<void>((resolve) => {
      drained = resolve
    })
    const startedAt = performance.now()
    await createAll(belfry, count, () => ({ tenant: 'greedy', queue: QUEUE, payload: {} }))
    await settle(client)
    latencies = []
    await startOthers(isDrained)
    const tookMs = performance.now() - startedAt
    await waitForHistory(client, count + created)
    await checkHistory(client, count + created)
    const [p95Alone, p95Beside] = [percentile(alone, 0.95), percentile(latencies, 0.95)]
    return [
      { name: 'alone_p50', value: percentile(alone, 0.5), unit: 'ms' },
      { name: 'alone_p95', value: p95Alone, unit: 'ms' },
      { name: 'beside_p50', value: percentile(latencies, 0.5), unit: 'ms' },
      { name: 'beside_p95', value: p95Beside, unit: 'ms' },
      { name: 'beside_to_alone_p95', value: p95Beside / p95Alone, unit: '×' },
      { name: 'greedy', value: count / (tookMs / 1_000), unit: 'runs/s' },
    ]
  } finally {
    await belfry.stop()
    await client.end()
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
