import { checkHistory, createAll, DEADLINE_MS, settle, startBelfry, waitForHistory } from '../belfry.ts'
import { connect } from '../database.ts'
import { costs, startMeter } from '../meter.ts'
import { startDispatcherSide, startOutside } from '../outside-process.ts'
import { openConnection, requestText, statusOf } from '../tiny-http.ts'
import { type Measurement, mustEqual, type Setting, sized, type Workload } from '../workload.ts'

const WARM_UP = 20_000
/** As many as Belfry opens to one origin. */
const CONNECTIONS = 256
/** What Belfry sends along with every call, in names and about in length. */
const CALL_HEADERS = {
  'content-type': 'application/json',
  'user-agent': 'belfry',
  'idempotency-key': '01980000-0000-7000-8000-000000000000.mbq0zzzz',
  'belfry-job-id': '01980000-0000-7000-8000-000000000000',
  'belfry-run-id': '01980000-0000-7000-8000-000000000000.mbq0zzzz',
  'belfry-attempt': '1',
  'belfry-nominal-at': '2026-01-01T00:00:00.000Z',
  traceparent: '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01',
  'webhook-id': '01980000-0000-7000-8000-000000000000_mbq0zzzz',
  'webhook-timestamp': '1767225600',
  'webhook-signature': 'v1,0123456789abcdef0123456789abcdef0123456789abcde=',
}

export const http: Workload = {
  name: 'http',
  summary: 'HTTP calls that wait already, to a tiny server on this machine, until all are in history',
  rounds: { quick: 2, full: 3 },
  subjects: [
    { name: 'floor', perform: measureFloor },
    { name: 'belfry', perform: (setting) => measure(setting, 1) },
    { name: 'belfry, 2 processes', perform: (setting) => measure(setting, 2) },
  ],
}

/** Calls that stay away must fail the bench, not hold it up. */
function within<Answer>(deadlineMs: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`the target did not get all calls within ${deadlineMs} ms`))
    const timer = setTimeout(late, deadlineMs)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** What this machine can do at all: the same calls over as many sockets, and nothing else; no client library, no database. */
async function measureFloor(setting: Setting): Promise<Measurement[]> {
  const count = sized(setting, { quick: 100_000, full: 400_000 })
  const outside = startOutside()
  const { port } = await outside.ask<{ port: number }>({ kind: 'listen' })
  let sent = 0
  const caller = async (calls: number) => {
    const connection = await openConnection(port)
    while (sent < calls) {
      const n = sent++
      const answer = await connection.send(requestText('POST', `/${n}`, CALL_HEADERS, JSON.stringify({ n })))
      mustEqual('the status of a bare call', statusOf(answer), 200)
    }
    connection.close()
  }
  const perform = async (calls: number) => {
    sent = 0
    await Promise.all(Array.from({ length: CONNECTIONS }, () => caller(calls)))
  }
  try {
    await perform(WARM_UP)
    const called = outside.ask<{ seconds: number }>({ kind: 'expect', calls: count })
    const cpu = process.cpuUsage()
    await perform(count)
    const { seconds } = await within(DEADLINE_MS, called)
    const { user, system } = process.cpuUsage(cpu)
    return [
      { name: 'http', value: count / seconds, unit: 'calls/s' },
      { name: 'http_node_cpu', value: (user + system) / count, unit: 'µs/run' },
    ]
  } finally {
    outside.end()
  }
}

/** Filled by a node that does not dispatch, then performed by one process that does, or by several. */
async function measure(setting: Setting, processes: number): Promise<Measurement[]> {
  const count = sized(setting, { quick: 100_000, full: 400_000 })
  const client = await connect(setting.databaseUrl)
  const outside = startOutside()
  const dispatchers = Array.from({ length: processes }, startDispatcherSide)
  const { port } = await outside.ask<{ port: number }>({ kind: 'listen' })
  const filler = await startBelfry(setting, { roles: ['promoter', 'archivist'] })
  const fill = async (calls: number) => {
    await createAll(filler, calls, (n) => ({ http: { url: `http://127.0.0.1:${port}/${n}` }, payload: { n } }))
    await settle(client)
  }
  const start = () => Promise.all(dispatchers.map((one) => one.ask({ kind: 'start', setting })))
  const stop = () => Promise.all(dispatchers.map((one) => one.ask({ kind: 'stop' })))
  try {
    await fill(WARM_UP)
    await start()
    await waitForHistory(client, WARM_UP)
    await stop()
    await fill(count)
    const called = outside.ask<{ seconds: number }>({ kind: 'expect', calls: count })
    const meter = await startMeter(client)
    await start()
    const { seconds } = await within(DEADLINE_MS, called)
    await waitForHistory(client, WARM_UP + count)
    const spent = await meter()
    const nodeUs = (await stop()).reduce((sum, told) => sum + told.cpuUs, 0)
    await checkHistory(client, WARM_UP + count)
    return [
      { name: 'http', value: count / seconds, unit: 'calls/s' },
      // This process only watches; the dispatchers do the work.
      ...costs('http', { ...spent, nodeUs }, count),
    ]
  } finally {
    await filler.stop()
    for (const one of dispatchers) one.end()
    outside.end()
    await client.end()
  }
}
