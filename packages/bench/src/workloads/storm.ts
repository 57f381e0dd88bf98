import { checkHistory, startBelfry } from '../belfry.ts'
import { runWhenDue } from '../coming-due.ts'
import { connect } from '../database.ts'
import { costs } from '../meter.ts'
import { type Measurement, type Setting, sized, type Workload } from '../workload.ts'

const WARM_UP = 5_000

export const storm: Workload = {
  name: 'storm',
  summary: '100,000 jobs due in the same second: from that second until the last one has started',
  rounds: { quick: 1, full: 3 },
  subjects: [{ name: 'belfry', perform: measure }],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const count = sized(setting, { quick: 100_000, full: 100_000 })
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  const storm = (queue: string, size: number, createRate: number) =>
    runWhenDue({
      belfry,
      client,
      queue,
      count: size,
      createRate,
      jobAt: (index, second) => ({
        queue,
        payload: { n: index },
        runAt: new Date(second + (index % 1_000)).toISOString(),
      }),
    })
  try {
    const warmUp = await storm('warm-up', WARM_UP, 3_000)
    const { lastStartSeconds, spent } = await storm('storm', count, warmUp.createRate)
    await checkHistory(client, WARM_UP + count)
    return [{ name: 'storm', value: lastStartSeconds, unit: 's' }, ...costs('storm', spent, count)]
  } finally {
    await belfry.stop()
    await client.end()
  }
}
