import { writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { openServer, type Server } from './database.ts'
import { type Options, readOptions, USAGE } from './options.ts'
import { performApart } from './perform-apart.ts'
import { ReportWriter, readable } from './report.ts'
import type { Workload } from './workload.ts'
import { WORKLOADS } from './workloads/index.ts'

/**
 * The bench: all subjects of all workloads on one PostgreSQL, each in a database and a process of its own. Within a
 * workload the subjects take turns, round by round, since a machine is never equally fast for long; each is judged by
 * the median of its rounds. Ratios within one run are what counts.
 */
async function main(): Promise<void> {
  const options = readOptionsOrExplain()
  if (!options) return
  if (options.list) {
    for (const { name, summary } of WORKLOADS) console.log(`${name.padEnd(14)} ${summary}`)
    return
  }
  const chosen = WORKLOADS.filter(({ name }) => options.only.length === 0 || options.only.includes(name))
  const writer = new ReportWriter()
  const stopped = new AbortController()
  process.once('SIGINT', () => stopped.abort())
  process.once('SIGTERM', () => stopped.abort())
  const server = await openServer(process.env.BELFRY_DATABASE_URL || undefined)
  const machine = { cpus: cpus().length, model: cpus()[0]?.model, node: process.version, postgres: server.version }
  const startedAt = performance.now()
  console.log(`${machine.cpus} × ${machine.model}, Node.js ${machine.node}, PostgreSQL ${machine.postgres}`)
  try {
    for (const workload of chosen) await perform(workload, { options, server, writer, signal: stopped.signal })
  } finally {
    await server.stop()
  }
  if (stopped.signal.aborted) writer.fail('stopped before the end')
  const report = {
    pace: options.pace,
    scale: options.scale,
    shards: options.shards,
    machine,
    seconds: secondsSince(startedAt),
    ...writer.report(),
  }
  console.log(readable(report))
  console.log(`\n${report.seconds} s in all`)
  if (options.jsonFile) await writeFile(options.jsonFile, `${JSON.stringify(report, null, 2)}\n`)
  if (report.failures.length > 0) process.exitCode = 1
}

interface Bench {
  options: Options
  server: Server
  writer: ReportWriter
  signal: AbortSignal
}

async function perform(workload: Workload, bench: Bench): Promise<void> {
  const { pace, scale, shards } = bench.options
  const rounds = workload.rounds[pace]
  const out = new Set<string>()
  for (let round = 1; round <= rounds; round++) {
    for (const subject of workload.subjects) {
      if (out.has(subject.name) || bench.signal.aborted) continue
      const startedAt = performance.now()
      const answer = await bench.server.withFreshDatabase((databaseUrl) =>
        performApart(
          { workload: workload.name, subject: subject.name, setting: { databaseUrl, pace, scale, shards } },
          bench.signal,
        ),
      )
      const title = `${workload.name} · ${subject.name} · ${round}/${rounds}`
      if (answer.kind === 'measured') {
        bench.writer.add(subject.name, answer.measurements)
        const said = answer.measurements.map(
          ({ value, unit }) => `${value.toLocaleString('en-US', { maximumFractionDigits: 2 })} ${unit}`,
        )
        console.log(`${title}: ${said.join(', ')}  (${secondsSince(startedAt)} s)`)
      } else {
        out.add(subject.name)
        if (answer.kind === 'skipped') bench.writer.note(`${subject.name} left out: ${answer.reason}`)
        else bench.writer.fail(`${title}: ${answer.reason}`)
        console.log(`${title}: ${answer.kind}: ${answer.reason}`)
      }
    }
  }
}

function readOptionsOrExplain(): Options | undefined {
  try {
    return readOptions(
      process.argv.slice(2),
      WORKLOADS.map(({ name }) => name),
    )
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
    process.exitCode = 1
    return undefined
  }
}

function secondsSince(startedAt: number): number {
  return Math.round((performance.now() - startedAt) / 100) / 10
}

await main()
