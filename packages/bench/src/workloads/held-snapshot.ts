import { checkHistory, startBelfry } from '../belfry.ts'
import { connect } from '../database.ts'
import { costs } from '../meter.ts'
import { type Measurement, type Setting, type Subject, sized, type Workload } from '../workload.ts'
import { drain } from './pre-enqueued.ts'

const WARM_UP = 20_000

export const heldSnapshot: Workload = {
  name: 'held-snapshot',
  summary: 'many pre-enqueued runs through one queue while a transaction holds a snapshot open, and without one',
  rounds: { quick: 1, full: 2 },
  subjects: [subject('belfry', 'free'), subject('belfry, snapshot held', 'held')],
}

function subject(name: string, snapshot: 'free' | 'held'): Subject {
  return { name, perform: (setting) => measure(setting, snapshot) }
}

async function measure(setting: Setting, snapshot: 'free' | 'held'): Promise<Measurement[]> {
  // One queue and many runs: claims then start where all the dead rows of the runs before them lie.
  const runs = sized(setting, { quick: 400_000, full: 1_500_000 })
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  const analyst = await connect(setting.databaseUrl)
  try {
    await drain({ belfry, client, queue: 'warm-up', runs: WARM_UP, payload: { n: 1 } })
    if (snapshot === 'held') {
      await analyst.query('begin isolation level repeatable read')
      // A snapshot is taken with the first statement, not with `begin`.
      await analyst.query('select count(*) from pg_class')
    }
    const { seconds, spent } = await drain({ belfry, client, queue: 'noop', runs, payload: { n: 1 } })
    if (snapshot === 'held') await analyst.query('commit')
    await checkHistory(client, WARM_UP + runs)
    return [{ name: 'long_run', value: runs / seconds, unit: 'runs/s' }, ...costs('long_run', spent, runs)]
  } finally {
    await belfry.stop()
    await analyst.end()
    await client.end()
  }
}
