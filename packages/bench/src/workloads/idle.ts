import { startBelfry } from '../belfry.ts'
import { countQueries } from '../count-queries.ts'
import type { Measurement, Setting, Workload } from '../workload.ts'

const SETTLE_MS = 5_000
const WATCHED_MS = { quick: 20_000, full: 60_000 }

export const idle: Workload = {
  name: 'idle',
  summary: 'what a node with one handler and nothing to do asks of the database and the processor',
  rounds: { quick: 1, full: 1 },
  subjects: [{ name: 'belfry', perform: measure }],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const queries = countQueries()
  const belfry = await startBelfry(setting)
  belfry.handle('idle', async () => {}, { concurrency: 10 })
  const rest = (ms: number) => new Promise((wake) => setTimeout(wake, ms))
  try {
    await rest(SETTLE_MS)
    if (queries() === 0) throw new Error('the start has asked nothing: the queries are not counted')
    const before = queries()
    const cpuBefore = process.cpuUsage()
    const startedAt = performance.now()
    await rest(WATCHED_MS[setting.pace])
    const seconds = (performance.now() - startedAt) / 1_000
    const cpu = process.cpuUsage(cpuBefore)
    return [
      { name: 'idle_queries', value: (queries() - before) / seconds, unit: '1/s' },
      { name: 'idle_node_cpu', value: (cpu.user + cpu.system) / 10_000 / seconds, unit: '%' },
    ]
  } finally {
    await belfry.stop()
  }
}
