import { countQueries } from '../count-queries.ts'
import { startPostgresMeter } from '../processor.ts'
import { withRemote } from '../remote.ts'
import { type Measurement, mustEqual, type Setting, type Workload } from '../workload.ts'

const POLLS = 1_000
const SETTLE_MS = 5_000
/** Whole rounds: each worker asks again after 27 to 30 s, and half a round would count more or less of that than there is. */
const WATCHED_MS = { quick: 28_500, full: 57_000 }

export const remoteIdle: Workload = {
  name: 'remote-idle',
  summary: 'what 1,000 workers that wait for work ask of the node, the database and the processor',
  rounds: { quick: 1, full: 1 },
  subjects: [{ name: 'belfry', perform: measure }],
}

function measure(setting: Setting): Promise<Measurement[]> {
  const queries = countQueries()
  const rest = (ms: number) => new Promise((wake) => setTimeout(wake, ms))
  return withRemote(setting, async ({ workers, api, client }) => {
    const { open } = await workers.ask<{ open: number }>({ kind: 'poll_idle', api, queue: 'idle', polls: POLLS })
    mustEqual('Belfry, polls that wait', open, POLLS)
    await rest(SETTLE_MS)
    if (queries() === 0) throw new Error('the start has asked nothing: the queries are not counted')
    const postgres = await startPostgresMeter(client)
    const before = queries()
    const cpuBefore = process.cpuUsage()
    const startedAt = performance.now()
    await rest(WATCHED_MS[setting.pace])
    const seconds = (performance.now() - startedAt) / 1_000
    const asked = queries() - before
    const cpu = process.cpuUsage(cpuBefore)
    const postgresUs = await postgres()
    const share = (us: number) => us / 10_000 / seconds
    return [
      { name: 'remote_idle_queries', value: asked / seconds, unit: '1/s' },
      { name: 'remote_idle_server_cpu', value: share(cpu.user + cpu.system), unit: '%' },
      ...(postgresUs === null ? [] : [{ name: 'remote_idle_postgres_cpu', value: share(postgresUs), unit: '%' }]),
    ]
  })
}
