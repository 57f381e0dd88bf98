import { checkHistory, createAll, DEADLINE_MS, settle, startBelfry, waitForHistory } from '../belfry.ts'
import { connect } from '../database.ts'
import { startOutside } from '../outside-process.ts'
import { type Measurement, type Setting, sized, type Workload } from '../workload.ts'

const WARM_UP = 5_000

export const http: Workload = {
  name: 'http',
  summary: 'HTTP calls that wait already, to a tiny server on this machine, until all are in history',
  rounds: { quick: 2, full: 3 },
  subjects: [{ name: 'belfry', perform: measure }],
}

/** Calls that stay away must fail the bench, not hold it up. */
function within<Answer>(deadlineMs: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`the target did not get all calls within ${deadlineMs} ms`))
    const timer = setTimeout(late, deadlineMs)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Filled by a node that does not dispatch, then performed by one that does. */
async function measure(setting: Setting): Promise<Measurement[]> {
  const count = sized(setting, { quick: 100_000, full: 400_000 })
  const client = await connect(setting.databaseUrl)
  const outside = startOutside()
  const { port } = await outside.ask<{ port: number }>({ kind: 'listen' })
  const filler = await startBelfry(setting, { roles: ['promoter', 'archivist'] })
  const fill = async (calls: number) => {
    await createAll(filler, calls, (n) => ({ http: { url: `http://127.0.0.1:${port}/${n}` }, payload: { n } }))
    await settle(client)
  }
  try {
    await fill(WARM_UP)
    const belfry = await startBelfry(setting, { roles: ['dispatcher'], allowPrivateTargets: true })
    await waitForHistory(client, WARM_UP)
    await belfry.stop()
    await fill(count)
    const called = outside.ask<{ seconds: number }>({ kind: 'expect', calls: count })
    const measured = await startBelfry(setting, { roles: ['dispatcher'], allowPrivateTargets: true })
    const cpu = process.cpuUsage()
    const { seconds } = await within(DEADLINE_MS, called)
    await waitForHistory(client, WARM_UP + count)
    const { user, system } = process.cpuUsage(cpu)
    await measured.stop()
    await checkHistory(client, WARM_UP + count)
    return [
      { name: 'http', value: count / seconds, unit: 'calls/s' },
      { name: 'http_node_cpu', value: (user + system) / count, unit: 'µs/call' },
    ]
  } finally {
    await filler.stop()
    outside.end()
    await client.end()
  }
}
