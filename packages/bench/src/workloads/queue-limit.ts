import { checkHistory, startBelfry } from '../belfry.ts'
import { connect } from '../database.ts'
import { costs } from '../meter.ts'
import { type Measurement, type Setting, sized, type Workload } from '../workload.ts'
import { drain } from './pre-enqueued.ts'

const WARM_UP = 20_000
/** More than are ever under way. */
const NEVER_REACHED = 100_000

/** The same work as pre-enqueued no-ops, from a queue that has a limit. */
export const queueLimit: Workload = {
  name: 'queue-limit',
  summary: 'no-op runs of a queue with a limit that is never reached, against one without',
  rounds: { quick: 2, full: 3 },
  subjects: [
    { name: 'belfry', perform: (setting) => measure(setting, null) },
    { name: 'belfry, limited', perform: (setting) => measure(setting, NEVER_REACHED) },
  ],
}

async function measure(setting: Setting, maxRunning: number | null): Promise<Measurement[]> {
  const runs = sized(setting, { quick: 100_000, full: 300_000 })
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)
  try {
    const { queues } = belfry.tenant({ tenantId: 1, tenant: 'default', actor: 'bench' })
    for (const queue of ['warm-up', 'noop']) await queues.put(queue, { maxRunning })
    await drain({ belfry, client, queue: 'warm-up', runs: WARM_UP, payload: 1 })
    const { seconds, spent } = await drain({ belfry, client, queue: 'noop', runs, payload: 1 })
    await checkHistory(client, WARM_UP + runs)
    return [{ name: 'queue_limit', value: runs / seconds, unit: 'runs/s' }, ...costs('queue_limit', spent, runs)]
  } finally {
    await belfry.stop()
    await client.end()
  }
}
