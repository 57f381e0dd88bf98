import { startBelfry } from '../belfry.ts'
import { connect, readNumber, withDatabase } from '../database.ts'
import type { Measurement, Setting, Workload } from '../workload.ts'

/** A connection that has gone idle says only after 10 s what it did before: the start must not count as idling. */
const SETTLE_MS = 15_000
const WATCHED_MS = { quick: 20_000, full: 60_000 }

export const idle: Workload = {
  name: 'idle',
  summary: 'what a node with one handler and nothing to do asks of the database and the processor',
  rounds: { quick: 1, full: 1 },
  subjects: [{ name: 'belfry', perform: measure }],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const database = decodeURIComponent(new URL(setting.databaseUrl).pathname.slice(1))
  // Watched from another database, so that watching is not counted.
  const watcher = await connect(withDatabase(setting.databaseUrl, 'postgres'))
  const belfry = await startBelfry(setting)
  belfry.handle('idle', async () => {}, { concurrency: 10 })
  const transactions = () =>
    readNumber(watcher, 'select xact_commit + xact_rollback from pg_stat_database where datname = $1', [database])
  const rest = (ms: number) => new Promise((wake) => setTimeout(wake, ms))
  try {
    await rest(SETTLE_MS)
    const before = await transactions()
    const cpuBefore = process.cpuUsage()
    const startedAt = performance.now()
    await rest(WATCHED_MS[setting.pace])
    const seconds = (performance.now() - startedAt) / 1_000
    const cpu = process.cpuUsage(cpuBefore)
    const asked = (await transactions()) - before
    return [
      { name: 'idle_queries', value: asked / seconds, unit: '1/s' },
      { name: 'idle_node_cpu', value: (cpu.user + cpu.system) / 10_000 / seconds, unit: '%' },
    ]
  } finally {
    await belfry.stop()
    await watcher.end()
  }
}
