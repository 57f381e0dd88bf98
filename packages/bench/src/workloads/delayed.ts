import { checkHistory, startBelfry } from '../belfry.ts'
import { runWhenDue } from '../coming-due.ts'
import { connect } from '../database.ts'
import { costs } from '../meter.ts'
import { type Measurement, type Setting, sized, type Workload } from '../workload.ts'

const WARM_UP = 10_000

export const delayed: Workload = {
  name: 'delayed',
  summary:
    'one-off no-op jobs with a common due time, from that instant until all are in history; against the staged floor',
  rounds: { quick: 2, full: 3 },
  subjects: [
    {
      name: 'floor',
      perform: async (setting) => (await import('../floors.ts')).measureFloor('staged', 'delayed', setting),
    },
    { name: 'belfry', perform: measure },
  ],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const count = sized(setting, { quick: 150_000, full: 400_000 })
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  const oneOffs = (queue: string, size: number, createRate: number) =>
    runWhenDue({
      belfry,
      client,
      queue,
      count: size,
      createRate,
      jobAt: (index, firstDue) => ({ queue, payload: { n: index }, runAt: new Date(firstDue).toISOString() }),
    })
  try {
    const warmUp = await oneOffs('warm-up', WARM_UP, 4_000)
    const { seconds, spent } = await oneOffs('noop', count, warmUp.createRate)
    await checkHistory(client, WARM_UP + count)
    return [{ name: 'delayed', value: count / seconds, unit: 'runs/s' }, ...costs('delayed', spent, count)]
  } finally {
    await belfry.stop()
    await client.end()
  }
}
