import { createAll, startBelfry, table } from '../belfry.ts'
import { connect, readNumber } from '../database.ts'
import { costs, startMeter } from '../meter.ts'
import { type Measurement, mustEqual, type Setting, sized, type Workload } from '../workload.ts'

const CALLERS = 64
const WARM_UP = 5_000

export const create: Workload = {
  name: 'create',
  summary: 'jobs created per second, one by one by 64 callers at once, and in bulk; each acknowledged after its commit',
  rounds: { quick: 1, full: 3 },
  subjects: [{ name: 'belfry', perform: measure }],
}

async function measure(setting: Setting): Promise<Measurement[]> {
  const singles = sized(setting, { quick: 60_000, full: 200_000 })
  const bulk = sized(setting, { quick: 200_000, full: 500_000 })
  const client = await connect(setting.databaseUrl)
  const belfry = await startBelfry(setting)

  async function createOneByOne(count: number): Promise<number> {
    const startedAt = performance.now()
    let next = 0
    const caller = async () => {
      while (next < count) await belfry.jobs.create({ queue: 'single', payload: { n: next++ } })
    }
    await Promise.all(Array.from({ length: CALLERS }, caller))
    return count / ((performance.now() - startedAt) / 1_000)
  }

  try {
    await createOneByOne(WARM_UP)
    const singleMeter = await startMeter(client)
    const singleRate = await createOneByOne(singles)
    const singleSpent = await singleMeter()
    await createAll(belfry, WARM_UP, (index) => ({ queue: 'bulk', payload: { n: index } }))
    const bulkMeter = await startMeter(client)
    const bulkRate = await createAll(belfry, bulk, (index) => ({ queue: 'bulk', payload: { n: index } }))
    const bulkSpent = await bulkMeter()
    const created = await readNumber(client, `select count(*) from ${table('runs')}`)
    mustEqual('Belfry, runs created', created, WARM_UP + singles + WARM_UP + bulk)
    return [
      { name: 'create_single', value: singleRate, unit: 'jobs/s' },
      ...costs('create_single', singleSpent, singles),
      { name: 'create_bulk', value: bulkRate, unit: 'jobs/s' },
      ...costs('create_bulk', bulkSpent, bulk),
    ]
  } finally {
    await belfry.stop()
    await client.end()
  }
}
