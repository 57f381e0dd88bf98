// Performs attempts in a process of its own, with the engine as a library or as a worker over HTTP:
// `node performer.mjs <options as JSON>`. Each attempt is told to the ledger before its work begins; an attempt whose
// begin could not be told fails and does no work. The process ends with its parent, whose pipe is its stdin.
import { Agent, request } from 'node:http'
import { scheduler } from 'node:timers/promises'

const { name, role, modules, settings, queues, ledgerUrl } = JSON.parse(process.argv[2])
const agent = new Agent({ keepAlive: true })
process.stdin.resume().on('close', () => process.exit(1))

/** Sent once: a repeated line would look like an attempt that was performed twice. */
function tell(what, run) {
  return new Promise((resolve, reject) => {
    const call = request(ledgerUrl, { method: 'POST', agent }, (answer) => answer.resume().on('end', resolve))
    call.on('error', reject).end(JSON.stringify({ what, runId: run.id, attempt: run.attempt, by: name }))
  })
}

async function perform(run) {
  const { ms = 0, failsOnce = false } = run.payload ?? {}
  await tell('began', run)
  if (ms > 0) await scheduler.wait(ms)
  await tell('ended', run)
  if (failsOnce && run.attempt === 1) throw new Error('fails once')
}

const silent = () => {}
const logger = {
  ...{ debug: silent, info: silent, warn: silent },
  error: (message, fields) => console.error(message, fields),
}
const start = {
  async library() {
    const { Belfry } = await import(modules.engine)
    const belfry = await Belfry.start({ ...settings, logger })
    for (const [queue, concurrency] of Object.entries(queues)) belfry.handle(queue, perform, { concurrency })
  },
  async worker() {
    const { BelfryClient } = await import(modules.client)
    const { Worker } = await import(modules.worker)
    const { url, key, leaseMs } = settings
    const served = Object.entries(queues).map(([queue, concurrency]) => [queue, { handler: perform, concurrency }])
    new Worker({ client: new BelfryClient({ url, key }), queues: Object.fromEntries(served), leaseMs, logger }).start()
  },
}
await start[role]()
console.log('ready')
