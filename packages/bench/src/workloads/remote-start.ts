import { checkHistory, waitForHistory } from '../belfry.ts'
import { costs, startMeter } from '../meter.ts'
import { withRemote } from '../remote.ts'
import type { Measurement, Setting, Workload } from '../workload.ts'

const WARM_UP = 100
const MEASURED = { quick: 500, full: 2_000 }
/** Fifty a second on average. */
const PAUSE_UP_TO_MS = 40

export const remoteStart: Workload = {
  name: 'remote-start',
  summary: 'from POST of immediate work until the handler of a worker in another process begins, fifty a second',
  rounds: { quick: 1, full: 3 },
  subjects: [{ name: 'belfry', perform: measure }],
}

function measure(setting: Setting): Promise<Measurement[]> {
  return withRemote(setting, async ({ workers, api, client }) => {
    const measured = MEASURED[setting.pace]
    const meter = await startMeter(client)
    const { p50, p95, p99 } = await workers.ask<{ p50: number; p95: number; p99: number }>({
      kind: 'start',
      api,
      queue: 'light',
      warmUp: WARM_UP,
      measured,
      pauseUpToMs: PAUSE_UP_TO_MS,
    })
    await waitForHistory(client, WARM_UP + measured)
    const spent = await meter()
    await workers.ask({ kind: 'stop' })
    await checkHistory(client, WARM_UP + measured)
    return [
      { name: 'remote_start_p50', value: p50, unit: 'ms' },
      { name: 'remote_start_p95', value: p95, unit: 'ms' },
      { name: 'remote_start_p99', value: p99, unit: 'ms' },
      // The warm-up is in it, and in what it is divided by.
      ...costs('remote_start', spent, WARM_UP + measured),
    ]
  })
}
