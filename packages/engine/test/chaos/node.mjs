// One Belfry node in a process of its own, for tests that kill, stop and starve it: `node node.mjs <options as JSON>`.
// It is told what to do in lines of JSON on stdin and answers on stdout; what its handlers did it writes down in a
// database that takes no part in the test.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { scheduler } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

const { engine, belfry: options, queues, ledger, deaf, stallsAfter = Infinity } = JSON.parse(process.argv[2])
const { default: pg } = await import(pathToFileURL(createRequire(engine).resolve('pg')).href)
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)

let unheard = 0
if (deaf) {
  const emit = pg.Client.prototype.emit
  pg.Client.prototype.emit = function (name, ...details) {
    if (name !== 'notification') return emit.call(this, name, ...details)
    unheard++
    return false
  }
}

const { Belfry } = await import(pathToFileURL(engine).href)
const book = new pg.Pool({ ...ledger.connection, max: 2 })

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
const begin = writer(
  `insert into ${ledger.table} (job_id, nominal_at, attempt, pid, began_at)
   select job_id, nominal_at, attempt, pid, clock_timestamp()
   from json_to_recordset($1) as line (job_id uuid, nominal_at timestamptz, attempt int, pid int)`,
)
const end = writer(
  `update ${ledger.table} l set ended_at = clock_timestamp()
   from json_to_recordset($1) as line (job_id uuid, nominal_at timestamptz, attempt int, pid int)
   where l.job_id = line.job_id and l.nominal_at = line.nominal_at and l.attempt = line.attempt and l.pid = line.pid`,
)

let performed = 0
async function perform(run) {
  const { ms = 0, blockMs = 0, failsOnce = false } = run.payload ?? {}
  const line = { job_id: run.jobId, nominal_at: run.nominalAt, attempt: run.attempt, pid: process.pid }
  await begin(line)
  if (++performed > stallsAfter) await new Promise(() => {})
  if (blockMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs)
  if (ms > 0) await scheduler.wait(ms)
  if (failsOnce && run.failures === 0) throw new Error('fails once')
  if (ms >= 1_000 || blockMs > 0) await end(line)
}

const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: (message, fields) => say({ message, fields }) }
const belfry = await Belfry.start({ ...options, logger })
for (const [queue, concurrency] of Object.entries(queues)) belfry.handle(queue, perform, { concurrency })

const local = {
  memory: () => {
    globalThis.gc?.()
    return process.memoryUsage().heapUsed
  },
  unheard: () => unheard,
  /** Many single creates at once; answers how each ended. */
  createEach: async (jobs) =>
    (await Promise.allSettled(jobs.map((job) => belfry.jobs.create(job)))).map(
      ({ value, reason }) => value ?? { code: reason.code ?? String(reason) },
    ),
}
say({ ready: true })

for await (const text of createInterface({ input: process.stdin })) {
  const { id, call, values } = JSON.parse(text)
  const [place, method] = call.split('.')
  const answer = method ? belfry[place][method](...values) : local[place](...values)
  Promise.resolve(answer).then(
    (result) => say({ id, result }),
    (error) => say({ id, problem: { code: error.code, message: error.message } }),
  )
}
