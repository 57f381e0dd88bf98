// One worker in a process of its own, for tests that kill, pause and cut it: `node handling-process.mjs <options as JSON>`.
// What its handlers do stands in a ledger that takes no part in the test; what the server answered it, word by word, in a
// file. Both are written before anybody goes on: what was not written down was not heard.
import { appendFileSync } from 'node:fs'
import { scheduler } from 'node:timers/promises'
import pg from 'pg'

const options = JSON.parse(process.argv[2])
const book = new pg.Pool({ ...options.ledger.connection, max: 2, allowExitOnIdle: true })
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)

const { BelfryClient } = await import(options.modules.client)
const { Worker } = await import(options.modules.worker)

// – what the server answers –

const plainFetch = globalThis.fetch
const tokens = new Map()
globalThis.fetch = async (url, request) => {
  const answer = await plainFetch(url, request)
  const call = /\/v1\/(?:leases\/|queues\/[^/]+\/)(lease|heartbeat|complete|release)$/.exec(String(url))?.[1]
  if (call === undefined || answer.status !== 200) return answer
  const asked = JSON.parse(request.body)
  const told = await answer.clone().json()
  if (call === 'lease') for (const { token, runId, attempt } of told.runs) tokens.set(`${runId} ${attempt}`, token)
  appendFileSync(options.answers, `${JSON.stringify({ worker: options.id, call, asked, told })}\n`)
  return answer
}

// – what handlers do –

/** Writes what came meanwhile with one statement at a time; each writer goes on when its own line is on the books. */
function writer(text) {
  let lines = []
  let writing = Promise.resolve()
  return (line) => {
    lines.push(line)
    if (lines.length === 1) {
      writing = writing
        .catch(() => {})
        .then(() => {
          const batch = lines
          lines = []
          return book.query(text, [JSON.stringify(batch)])
        })
    }
    return writing
  }
}
const LINE = 'as line (run_id text, attempt int, worker text, got json, step int)'
const OWN = 'l.run_id = line.run_id and l.attempt = line.attempt and l.worker = line.worker'
const from = `from json_to_recordset($1) ${LINE}`
const { table } = options.ledger
const write = {
  began: writer(
    `insert into ${table} (run_id, attempt, worker, got, began_at)
     select run_id, attempt, worker, got, clock_timestamp() ${from}`,
  ),
  leaving: writer(`update ${table} l set leaving = line.step ${from} where ${OWN}`),
  left: writer(`update ${table} l set left_step = line.step ${from} where ${OWN}`),
  ended: writer(`update ${table} l set ended_at = clock_timestamp() ${from} where ${OWN}`),
}

let inFlight = 0
let performed = 0
let onStopping = () => {}
const stopping = new Promise((resolve) => {
  onStopping = resolve
})
process.once('SIGTERM', () => onStopping())

async function perform(run) {
  const { ms = 0, steps = 0, fails, snoozes, blocksMs = 0, until } = run.payload
  const line = { run_id: run.id, attempt: run.attempt, worker: options.id }
  await write.began({ ...line, got: (await run.checkpoint()) ?? null })
  say({ inFlight: ++inFlight })
  if (++performed > (options.stallsAfter ?? Infinity)) await new Promise(() => {})
  if (until === 'stopping') await stopping
  if (until === 'aborted') await scheduler.wait(600_000, { signal: run.signal })
  if (until === 'never') await new Promise(() => {})
  for (let step = 1; step <= steps; step++) {
    await write.leaving({ ...line, step })
    await run.checkpoint({ attempt: run.attempt, step })
    await write.left({ ...line, step })
    await scheduler.wait(ms / steps)
  }
  if (steps === 0 && ms > 0) await scheduler.wait(ms)
  if (blocksMs > 0) for (const end = performance.now() + blocksMs; performance.now() < end; );
  if (fails && run.attempt === 1) throw new Error('fails once')
  if (snoozes && run.attempt === 1) return run.snooze('100ms')
  await write.ended(line)
  inFlight--
  return { attempt: run.attempt }
}

/** A worker that was paused behaves well; this one also tries what a worse one would. */
async function insist({ id, attempt }) {
  if (!options.insists) return
  const token = tokens.get(`${id} ${attempt}`)
  const call = (path, body) =>
    fetch(`${options.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${options.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ workerId: options.id, ...body }),
    })
  await call('/v1/leases/heartbeat', { leases: [{ token, checkpoint: { attempt, step: 99 } }] })
  await call('/v1/leases/complete', { results: [{ token, status: 'succeeded', result: 'stale' }] })
}

const silent = () => {}
const worker = new Worker({
  client: new BelfryClient({ url: options.url, key: options.key }),
  queues: { [options.queue]: { handler: perform, concurrency: options.concurrency } },
  id: options.id,
  leaseMs: options.leaseMs,
  graceMs: options.graceMs,
  onLeaseLost: (run) => void insist(run).catch(silent),
  logger: { debug: silent, info: silent, warn: silent, error: (message, fields) => say({ error: message, fields }) },
})
worker.start()
say({ started: true })
