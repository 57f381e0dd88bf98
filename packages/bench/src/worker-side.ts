import { BelfryClient } from '@belfry/client'
import { Worker } from '@belfry/client/worker'
import { type Api, answerAsks, headersOf } from './apart.ts'
import { percentile } from './statistics.ts'
import { tallyUntil } from './tally.ts'
import { type Connection, openConnection, requestText, requestWriter, statusOf } from './tiny-http.ts'

/**
 * Workers in a process of their own: the one of the client package, and plain loops that speak HTTP with as little effort as
 * possible, so that what is measured is the server.
 */

export type WorkerAsk =
  | { kind: 'serve'; api: Api; queue: string; runs: number; concurrency: number; deadlineMs: number }
  | { kind: 'stop' }
  | {
      kind: 'one_by_one'
      api: Api
      queue: string
      runs: number
      connections: number
      /** The end of one run and the lease of the next. */
      inOneCall: boolean
      deadlineMs: number
    }
  | { kind: 'start'; api: Api; queue: string; warmUp: number; measured: number; pauseUpToMs: number }
  | { kind: 'poll_idle'; api: Api; queue: string; polls: number }

/** Time of the processor is in microseconds, of this whole process, since it was asked to begin. */
export type WorkerTold = { cpuUs: number } | { p50: number; p95: number; p99: number } | { open: number }

/** Polls that each idle worker makes before, so that the server's code is compiled as it is after its first minutes. */
const WARM_UP_POLLS = 10
/** As the client's worker waits. */
const MIN_WAIT_MS = 27_000
const MAX_WAIT_MS = 30_000

let worker: Worker | null = null
let cpuBefore = process.cpuUsage()

async function perform(ask: WorkerAsk): Promise<WorkerTold> {
  if (ask.kind !== 'stop') cpuBefore = process.cpuUsage()
  switch (ask.kind) {
    case 'serve':
      await serve(ask)
      return { cpuUs: cpuUs() }
    case 'stop': {
      const told = { cpuUs: cpuUs() }
      await worker?.stop()
      return told
    }
    case 'one_by_one':
      await oneByOne(ask)
      return { cpuUs: cpuUs() }
    case 'start':
      return latencies(ask)
    case 'poll_idle':
      return { open: await pollIdle(ask) }
  }
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage(cpuBefore)
  return user + system
}

const clientOf = ({ port, key }: Api) => new BelfryClient({ url: `http://127.0.0.1:${port}`, key })

/** Ends when the last handler was called; the worker goes on until it is stopped. */
async function serve({ api, queue, runs, concurrency, deadlineMs }: Extract<WorkerAsk, { kind: 'serve' }>) {
  const tally = tallyUntil(runs, deadlineMs)
  const handler = async () => tally.count()
  worker = new Worker({ client: clientOf(api), queues: { [queue]: { handler, concurrency } }, logger: QUIET })
  worker.start()
  await tally.all
}

const QUIET = { debug() {}, info() {}, warn: console.warn, error: console.error }

/** Each connection leases one run, completes it, and leases the next, until all are done: in two calls, or in one. */
async function oneByOne(ask: Extract<WorkerAsk, { kind: 'one_by_one' }>) {
  const { api, queue, runs, connections, deadlineMs } = ask
  const leaseText = requestWriter('POST', `/v1/queues/${queue}/lease`, headersOf(api))
  const completeText = requestWriter('POST', '/v1/leases/complete', headersOf(api))
  const tally = tallyUntil(runs, deadlineMs)
  const loop = async (_: unknown, index: number) => {
    const connection = await openConnection(api.port)
    const workerId = `one-by-one-${index}`
    const lease = { workerId, max: 1, waitMs: 1_000 }
    let results: { token: string; status: string }[] = []
    for (let call = 0; tally.counted < runs; call++) {
      const asked = { ...lease, requestId: `${queue}-${call}`, ...(results.length > 0 ? { results } : {}) }
      const leased = await send<{ runs: { token: string }[] } & Told>(connection, leaseText(JSON.stringify(asked)))
      if (results.length > 0) ended(leased, tally)
      const [run] = leased.runs
      results = run ? [{ token: run.token, status: 'succeeded' }] : []
      if (!run || ask.inOneCall) continue
      ended(await send<Told>(connection, completeText(JSON.stringify({ workerId, results }))), tally)
      results = []
    }
    connection.close()
  }
  // The last loops find out that nothing is left when their calls have waited long enough; nobody waits for that.
  await Promise.race([tally.all, Promise.all(Array.from({ length: connections }, loop))])
}

interface Told {
  results?: { outcome: string }[]
}

function ended({ results }: Told, tally: { count(): void }): void {
  if (results?.[0]?.outcome !== 'ok') throw new Error(`a completion was answered with ${results?.[0]?.outcome}`)
  tally.count()
}

const post = <Answer>(connection: Connection, api: Api, path: string, body: object): Promise<Answer> =>
  send<Answer>(connection, requestText('POST', path, headersOf(api), JSON.stringify(body)))

async function send<Answer>(connection: Connection, request: string): Promise<Answer> {
  const answer = await connection.send(request)
  if (statusOf(answer) !== 200 && statusOf(answer) !== 201)
    throw new Error(`${request.slice(0, request.indexOf('\r'))} was answered ${answer.firstLine}: ${answer.body}`)
  return JSON.parse(answer.body) as Answer
}

/** From sending `POST /v1/jobs` until the handler begins, with jobs sent whether or not those before have begun. */
async function latencies(ask: Extract<WorkerAsk, { kind: 'start' }>): Promise<WorkerTold> {
  const { api, queue, warmUp, measured, pauseUpToMs } = ask
  const total = warmUp + measured
  const sentAt: number[] = []
  const taken: number[] = []
  const tally = tallyUntil(total, total * pauseUpToMs + 30_000)
  const handler = async ({ payload }: { payload: unknown }) => {
    const { n } = payload as { n: number }
    if (n >= warmUp) taken.push(performance.now() - (sentAt[n] as number))
    tally.count()
  }
  worker = new Worker({ client: clientOf(api), queues: { [queue]: { handler } }, logger: QUIET })
  worker.start()
  const connection = await openConnection(api.port)
  for (let n = 0; n < total; n++) {
    await new Promise((wake) => setTimeout(wake, Math.random() * pauseUpToMs))
    sentAt[n] = performance.now()
    await post(connection, api, '/v1/jobs', { queue, payload: { n } })
  }
  await tally.all
  connection.close()
  return { p50: percentile(taken, 0.5), p95: percentile(taken, 0.95), p99: percentile(taken, 0.99) }
}

/** Workers that have nothing to do, each with one poll open at any time. Says how many are open once all are. */
async function pollIdle({ api, queue, polls }: Extract<WorkerAsk, { kind: 'poll_idle' }>): Promise<number> {
  const connections: Connection[] = []
  for (let index = 0; index < polls; index++) connections.push(await openConnection(api.port))
  const pollOnce = async (connection: Connection, index: number, call: number, waitMs: number): Promise<void> => {
    const path = `/v1/queues/${queue}/lease`
    const body = { workerId: `idle-${index}`, max: 10, waitMs: Math.round(waitMs), requestId: `idle-${index}-${call}` }
    const { runs } = await post<{ runs: unknown[] }>(connection, api, path, body)
    if (runs.length > 0) throw new Error('an idle queue had a run')
  }
  const poll = async (connection: Connection, index: number): Promise<never> => {
    // The first one ends at any time, as those of workers that were started one by one.
    await pollOnce(connection, index, WARM_UP_POLLS, 1 + Math.random() * (MAX_WAIT_MS - 1))
    for (let call = WARM_UP_POLLS + 1; ; call++)
      await pollOnce(connection, index, call, MIN_WAIT_MS + Math.random() * (MAX_WAIT_MS - MIN_WAIT_MS))
  }
  for (let call = 0; call < WARM_UP_POLLS; call++)
    await Promise.all(connections.map((connection, index) => pollOnce(connection, index, call, 1)))
  connections.forEach((connection, index) => {
    poll(connection, index).catch((error) => {
      console.error(error)
      process.exit(1)
    })
  })
  return connections.length
}

answerAsks(perform)
