import { writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { openServer, type Server } from './database.ts'
import { type Options, readOptions, USAGE } from './options.ts'
import { performApart } from './perform-apart.ts'
import { makeOther, type OtherProgram, type Program } from './programs.ts'
import { ReportWriter, readable } from './report.ts'
import { type Turn, turnsOf } from './turns.ts'
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
    for (const { name, summary, subjects } of WORKLOADS)
      console.log(`${name.padEnd(14)} ${summary}\n${' '.repeat(15)}by ${subjects.map((one) => one.name).join('; ')}`)
    return
  }
  const chosen = WORKLOADS.filter(({ name }) => options.only.length === 0 || options.only.includes(name))
  const writer = new ReportWriter()
  const stopped = new AbortController()
  process.once('SIGINT', () => stopped.abort())
  process.once('SIGTERM', () => stopped.abort())
  const other = options.against === undefined ? undefined : await makeOtherOrExit(options.against)
  const startedAt = performance.now()
  try {
    const server = await openServer(process.env.BELFRY_DATABASE_URL || undefined)
    const machine = { cpus: cpus().length, model: cpus()[0]?.model, node: process.version, postgres: server.version }
    console.log(`${machine.cpus} × ${machine.model}, Node.js ${machine.node}, PostgreSQL ${machine.postgres}`)
    if (other) console.log(`this: ${process.cwd()}\nother: ${options.against}`)
    try {
      for (const workload of chosen) await perform(workload, { options, other, server, writer, signal: stopped.signal })
    } finally {
      await server.stop()
    }
    if (stopped.signal.aborted) writer.fail('stopped before the end')
    await tell({ options, machine, seconds: secondsSince(startedAt), writer })
  } finally {
    await other?.remove()
  }
}

async function tell(ended: {
  options: Options
  machine: object
  seconds: number
  writer: ReportWriter
}): Promise<void> {
  const { pace, scale, shards, against, jsonFile } = ended.options
  const { machine, seconds } = ended
  const report = { pace, scale, shards, against: against ?? null, machine, seconds, ...ended.writer.report() }
  console.log(readable(report))
  console.log(`\n${seconds} s in all`)
  if (jsonFile) await writeFile(jsonFile, `${JSON.stringify(report, null, 2)}\n`)
  if (report.failures.length > 0) process.exitCode = 1
}

interface Bench {
  options: Options
  other: Program | undefined
  server: Server
  writer: ReportWriter
  signal: AbortSignal
}

async function perform(workload: Workload, bench: Bench): Promise<void> {
  const { options, other, signal } = bench
  const rounds = options.rounds ?? workload.rounds[options.pace]
  const out = new Set<string>()
  for (let round = 1; round <= rounds; round++) {
    for (const turn of turnsOf(workload, round, { subjects: options.subjects, other })) {
      if (out.has(turn.subject.name) || signal.aborted) continue
      if ((await performTurn(workload, { ...turn, round, rounds }, bench)) === 'out') out.add(turn.subject.name)
    }
  }
}

/** A subject that does not take part, or fails, is out: with one program alone there is nothing to compare. */
async function performTurn(
  workload: Workload,
  { subject, program, round, rounds }: Turn & { round: number; rounds: number },
  { options, other, server, writer, signal }: Bench,
): Promise<'done' | 'out'> {
  const { pace, scale, shards } = options
  const startedAt = performance.now()
  const answer = await server.withFreshDatabase((databaseUrl) => {
    const setting = { databaseUrl, pace, scale, shards }
    return performApart({ workload: workload.name, subject: subject.name, setting }, program, signal)
  })
  const place = `${workload.name} · ${subject.name}${other ? ` (${program.name})` : ''} · ${round}/${rounds}`
  if (answer.kind === 'measured') {
    writer.add({ subject: subject.name, round, program: program.name }, answer.measurements)
    const said = answer.measurements.map(
      ({ value, unit }) => `${value.toLocaleString('en-US', { maximumSignificantDigits: 4 })} ${unit}`,
    )
    console.log(`${place}: ${said.join(', ')}  (${secondsSince(startedAt)} s)`)
    return 'done'
  }
  if (answer.kind === 'skipped') writer.note(`${subject.name} left out: ${answer.reason}`)
  else if (program.name === 'this') writer.fail(`${place}: ${answer.reason}`)
  else writer.fail(`${place}: the program in ${options.against} does not perform this workload: ${answer.reason}`)
  console.log(`${place}: ${answer.kind}: ${answer.reason}`)
  return 'out'
}

function readOptionsOrExplain(): Options | undefined {
  try {
    return readOptions(process.argv.slice(2), WORKLOADS)
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
    process.exitCode = 1
    return undefined
  }
}

async function makeOtherOrExit(checkout: string): Promise<OtherProgram> {
  try {
    return await makeOther(checkout)
  } catch (error) {
    console.error(`--against ${checkout}: ${error instanceof Error ? error.message : error}`)
    // Nothing has been started.
    process.exit(1)
  }
}

function secondsSince(startedAt: number): number {
  return Math.round((performance.now() - startedAt) / 100) / 10
}

await main()
