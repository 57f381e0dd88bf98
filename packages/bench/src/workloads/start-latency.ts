import { checkHistory, startBelfry, waitForHistory } from '../belfry.ts'
import { connect } from '../database.ts'
import { costs, startMeter } from '../meter.ts'
import { percentile } from '../statistics.ts'
import type { Measurement, Setting, Workload } from '../workload.ts'

const WARM_UP = 100
const MEASURED = { quick: 600, full: 2_000 }
/** Light load: a job now and then, at times that keep no step with any loop of the node. */
const PAUSE_UP_TO_MS = 20

export const startLatency: Workload = {
  name: 'start-latency',
  summary: 'from calling create() for immediate work until its handler begins, one at a time',
  rounds: { quick: 1, full: 3 },
  subjects: [{ name: 'belfry', perform: measure }],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  let begin: () => void = () => {}
  belfry.handle('light', async () => begin(), { concurrency: 100 })
  const latencies: number[] = []
  let performed = 0
  const perform = async (rounds: number) => {
    latencies.length = 0
    for (const last = performed + rounds; performed < last; performed++) {
      await new Promise((wake) => setTimeout(wake, Math.random() * PAUSE_UP_TO_MS))
      const begun = new Promise<number>((resolve) => {
        begin = () => resolve(performance.now())
      })
      const calledAt = performance.now()
      await belfry.jobs.create({ queue: 'light', payload: { round: performed } })
      latencies.push((await begun) - calledAt)
    }
    await waitForHistory(client, performed)
  }
  try {
    await perform(WARM_UP)
    const meter = await startMeter(client)
    await perform(MEASURED[setting.pace])
    const spent = await meter()
    await checkHistory(client, performed)
    return [
      { name: 'start_p50', value: percentile(latencies, 0.5), unit: 'ms' },
      { name: 'start_p95', value: percentile(latencies, 0.95), unit: 'ms' },
      { name: 'start_p99', value: percentile(latencies, 0.99), unit: 'ms' },
      ...costs('start', spent, MEASURED[setting.pace]),
    ]
  } finally {
    await belfry.stop()
    await client.end()
  }
}
