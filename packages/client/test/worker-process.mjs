// A worker in a process of its own, from the build. It says what happens as lines of JSON, and is told what to do by messages.
import { pathToFileURL } from 'node:url'

const { build, url, key, queue, handler, concurrency, ...options } = JSON.parse(process.argv[2])
const load = (file) => import(pathToFileURL(`${build}/client/dist/${file}`).href)
const { BelfryClient } = await load('index.js')
const { Worker } = await load('worker/index.js')

const say = (event, fields = {}) => process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`)
const told = new Map()
const toBeTold = (word) => new Promise((resolve) => told.set(word, resolve))
process.on('message', (word) => told.get(word)?.())

const handlers = {
  /** Blocks the event loop for as long as the payload says. */
  blocks(run) {
    say('started', { attempt: run.attempt })
    // Without keeping the machine busy, which has other tests to run.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, run.payload)
    return { attempt: run.attempt }
  },
  /** Ends when it is told to, or stopped. */
  async waits(run) {
    run.signal.addEventListener('abort', () => say('aborted', { reason: run.signal.reason, attempt: run.attempt }))
    const goOn = toBeTold('go on')
    // By the answer to this the server also has the lease call that was sent before it.
    await run.heartbeat()
    say('started', { attempt: run.attempt })
    await goOn
    return { attempt: run.attempt, pid: process.pid }
  },
}

const worker = new Worker({
  client: new BelfryClient({ url, key }),
  queues: { [queue]: { handler: handlers[handler], prefetch: 0, concurrency } },
  logger: {
    debug() {},
    info() {},
    warn: (message, fields) => say('warn', { message, fields }),
    error: (message, fields) => say('error', { message, fields }),
  },
  onLeaseLost: (run) => say('lease lost', { attempt: run.attempt }),
  ...options,
})
worker.start()
// Only the worker keeps the process alive.
process.channel?.unref()
process.on('beforeExit', () => say('nothing left'))
say('ready', { id: worker.id })
