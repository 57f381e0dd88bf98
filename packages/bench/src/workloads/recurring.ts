import { checkHistory, type JobInput, startBelfry } from '../belfry.ts'
import { runWhenDue } from '../coming-due.ts'
import { connect } from '../database.ts'
import { costs } from '../meter.ts'
import { type Measurement, type Setting, sized, type Workload } from '../workload.ts'

const WARM_UP = 10_000
/** The jobs fall due at so many instants within one second: far faster than anybody can run them. */
const INSTANTS = 250
const STEP_MS = 4

export const recurring: Workload = {
  name: 'recurring',
  summary: 'no-op jobs that fire every 24 hours, all due within one second, shuffled; against the direct floor',
  rounds: { quick: 2, full: 3 },
  subjects: [
    {
      name: 'floor',
      perform: async (setting) => (await import('../floors.ts')).measureFloor('direct', 'recurring', setting),
    },
    { name: 'belfry', perform: measure },
  ],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const count = sized(setting, { quick: 150_000, full: 400_000 })
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  try {
    const warmUp = await runWhenDue({
      belfry,
      client,
      queue: 'warm-up',
      count: WARM_UP,
      createRate: 3_000,
      jobAt: daily('warm-up'),
    })
    const { createRate } = warmUp
    const { seconds, spent } = await runWhenDue({
      belfry,
      client,
      queue: 'noop',
      count,
      createRate,
      jobAt: daily('noop'),
    })
    await checkHistory(client, WARM_UP + count)
    return [{ name: 'recurring', value: count / seconds, unit: 'runs/s' }, ...costs('recurring', spent, count)]
  } finally {
    await belfry.stop()
    await client.end()
  }
}

/** Every 24 hours, from an instant drawn at random: due times and the order of creation have nothing to do with each other. */
export function daily(queue: string): (index: number, firstDue: number) => JobInput {
  return (index, firstDue) => {
    const startAt = firstDue + Math.floor(Math.random() * INSTANTS) * STEP_MS
    return { queue, payload: { n: index }, every: 'PT24H', startAt: new Date(startAt).toISOString() }
  }
}
