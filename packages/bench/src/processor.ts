import { readdir, readFile } from 'node:fs/promises'
import type pg from 'pg'
import { readNumber } from './database.ts'

/** Linux counts the time of processes in hundredths of a second. */
const TICK_US = 10_000

/**
 * How much time of the processor a PostgreSQL on this machine has taken between the call and the call of what it returns, in
 * microseconds; null where that cannot be known (another machine, another system). It includes whatever else runs in it.
 */
export async function startPostgresMeter(client: pg.Client): Promise<() => Promise<number | null>> {
  const backend = await readProcess(await readNumber(client, 'select pg_backend_pid()'))
  if (backend === null) return async () => null
  const before = await ticksOf(backend.parent)
  return async () => ((await ticksOf(backend.parent)) - before) * TICK_US
}

/** The postmaster, its processes, and those that have ended. */
async function ticksOf(postmaster: number): Promise<number> {
  for (;;) {
    const ended = await ticksOfEnded(postmaster)
    const ticks = await ticksOfLiving(postmaster)
    // A process that ended meanwhile would be counted twice, or not at all.
    if ((await ticksOfEnded(postmaster)) === ended) return ended + ticks
  }
}

async function ticksOfEnded(postmaster: number): Promise<number> {
  return (await readProcess(postmaster))?.ticksOfEnded ?? 0
}

async function ticksOfLiving(postmaster: number): Promise<number> {
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger)
  const processes = await Promise.all(pids.map(readProcess))
  return processes.reduce(
    (sum, one) => (one && (one.pid === postmaster || one.parent === postmaster) ? sum + one.ticks : sum),
    0,
  )
}

interface Process {
  pid: number
  parent: number
  ticks: number
  ticksOfEnded: number
}

async function readProcess(pid: number): Promise<Process | null> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may hold anything; what follows it are numbers.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const field = (number: number) => Number(fields[number - 3])
    return { pid, parent: field(4), ticks: field(14) + field(15), ticksOfEnded: field(16) + field(17) }
  } catch {
    return null
  }
}
