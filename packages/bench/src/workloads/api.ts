import { checkHistory, startBelfry, table, waitForHistory } from '../belfry.ts'
import { connect, readNumber } from '../database.ts'
import { costs, startMeter } from '../meter.ts'
import { startOutside } from '../outside-process.ts'
import { type Measurement, mustEqual, type Setting, sized, type Workload } from '../workload.ts'

const KEY = 'a-key-that-only-this-benchmark-knows'
const CONNECTIONS = 64
const PER_BATCH = 5_000
const BATCHES_IN_FLIGHT = 2
const WARM_UP = 5_000
const LATENCY = { quick: 600, full: 2_000 }

export const api: Workload = {
  name: 'api',
  summary: 'POST /v1/jobs over 64 connections, batches of 5,000, and the time from POST to the call at its target',
  rounds: { quick: 1, full: 3 },
  subjects: [{ name: 'belfry', perform: measure }],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const singles = sized(setting, { quick: 50_000, full: 200_000 })
  const batches = sized(setting, { quick: 200_000, full: 500_000 }) / PER_BATCH
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting, { allowPrivateTargets: true })
  const { startServer } = await import('@belfry/server')
  const server = await startServer({ belfry: () => belfry, adminKey: KEY, host: '127.0.0.1', port: 0 })
  const outside = startOutside()
  const node = { port: server.port, key: KEY }
  const post = async (path: string, bodies: string[], connections: number, total: number) =>
    (await outside.ask<{ seconds: number }>({ kind: 'post', api: node, path, bodies, connections, total })).seconds
  const single = [JSON.stringify({ queue: 'single', payload: { n: 1 } })]
  const batch = [
    JSON.stringify({ jobs: Array.from({ length: PER_BATCH }, (_, n) => ({ queue: 'bulk', payload: { n } })) }),
  ]
  try {
    const { port } = await outside.ask<{ port: number }>({ kind: 'listen' })
    const latency = await outside.ask<{ p50: number; p95: number; p99: number }>({
      kind: 'latency',
      api: node,
      targetUrl: `http://127.0.0.1:${port}`,
      warmUp: 100,
      measured: LATENCY[setting.pace],
    })
    await waitForHistory(client, 100 + LATENCY[setting.pace])
    await checkHistory(client, 100 + LATENCY[setting.pace])
    await post('/v1/jobs', single, CONNECTIONS, WARM_UP)
    const singleMeter = await startMeter(client)
    const singleSeconds = await post('/v1/jobs', single, CONNECTIONS, singles)
    const singleSpent = await singleMeter()
    await post('/v1/jobs/batch', batch, BATCHES_IN_FLIGHT, 2)
    const batchMeter = await startMeter(client)
    const batchSeconds = await post('/v1/jobs/batch', batch, BATCHES_IN_FLIGHT, batches)
    const batchSpent = await batchMeter()
    const created = await readNumber(client, `select count(*) from ${table('runs')}`)
    mustEqual('Belfry, runs created', created, WARM_UP + singles + (2 + batches) * PER_BATCH)
    return [
      { name: 'api_single', value: singles / singleSeconds, unit: 'jobs/s' },
      ...costs('api_single', singleSpent, singles),
      { name: 'api_batch', value: (batches * PER_BATCH) / batchSeconds, unit: 'jobs/s' },
      ...costs('api_batch', batchSpent, batches * PER_BATCH),
      { name: 'api_to_target_p50', value: latency.p50, unit: 'ms' },
      { name: 'api_to_target_p95', value: latency.p95, unit: 'ms' },
      { name: 'api_to_target_p99', value: latency.p99, unit: 'ms' },
    ]
  } finally {
    outside.end()
    await server.stop()
    await belfry.stop()
    await client.end()
  }
}
