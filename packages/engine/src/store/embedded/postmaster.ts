import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { copyFile, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { pause } from '../../runtime/pause.ts'
import { asServerUser, serverEnvironment } from './binaries.ts'
import { type Cluster, withDirectory } from './cluster.ts'
import { type Endpoint, endpointArguments } from './endpoint.ts'
import { openForAppend } from './private-file.ts'
import { isRunning } from './process-identity.ts'

/** A running server of the cluster, found by its pid file: ours, another process's, or an orphan. */
export interface Postmaster {
  pid: number
  /** PostgreSQL's own word: `ready`, `starting`, `stopping` … */
  status: string
}

export function findPostmaster(directory: string): Postmaster | null {
  const lines = readPidFile(directory)
  const pid = Number(lines?.[0])
  if (!lines || !Number.isInteger(pid) || pid <= 0) return null
  return isServerOf(directory, pid) ? { pid, status: (lines[7] ?? '').trim() } : null
}

/**
 * Removes a pid file whose number belongs to somebody else by now. PostgreSQL itself would take that process, or a
 * zombie, for its predecessor and refuse to start; a number that nobody has it handles well.
 */
export function removeMisleadingPidFile(directory: string): void {
  const pid = Number(readPidFile(directory)?.[0])
  if (Number.isInteger(pid) && pid > 0 && process.platform === 'linux' && existsSync(`/proc/${pid}`)) {
    rmSync(join(directory, 'postmaster.pid'), { force: true })
  }
}

function readPidFile(directory: string): string[] | null {
  try {
    return readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return null
  }
}

/** A server always stands in its data directory, which no other process that got its number by chance does. */
function isServerOf(directory: string, pid: number): boolean {
  if (!isRunning(pid)) return false
  if (process.platform === 'linux') {
    try {
      const [ours, theirs] = [statSync(directory), statSync(`/proc/${pid}/cwd`)]
      return ours.dev === theirs.dev && ours.ino === theirs.ino
    } catch {
      return false
    }
  }
  if (process.platform === 'win32') return true
  const { stdout } = spawnSync('ps', ['-o', 'comm=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.includes('postgres')
}

export interface Launch {
  pid: number | null
  /** Settles when the process ends, with what it wrote to the log since its start. */
  ended: Promise<string>
}

/** Starts the server in a session of its own: Ctrl-C and the end of a terminal reach Belfry only. */
export async function launch(cluster: Cluster, endpoint: Endpoint, logFile: string): Promise<Launch> {
  const log = await openForAppend(logFile, 0o644)
  const from = (await log.stat()).size
  try {
    return await withDirectory(cluster.directory, cluster.user, async (path, handle) => {
      const child = spawn(cluster.binaries.postgres, ['-D', path, ...endpointArguments(endpoint)], {
        ...serverEnvironment(),
        ...asServerUser(cluster.user),
        cwd: process.platform === 'win32' ? undefined : '/',
        detached: true,
        stdio: ['ignore', log.fd, log.fd, handle],
        windowsHide: true,
      })
      child.unref()
      const ended = new Promise<string>((done) => {
        child.once('error', (error) => done(error.message))
        child.once('exit', () => done(readFrom(logFile, from)))
      })
      return { pid: child.pid ?? null, ended }
    })
  } finally {
    await log.close()
  }
}

async function readFrom(file: string, position: number): Promise<string> {
  try {
    return (await readFile(file)).subarray(position).toString('utf8')
  } catch {
    return ''
  }
}

const STOP_POLL_MS = 10
const STOP_PATIENCE_MS = 300_000

/** Fast shutdown: open transactions are rolled back, everything committed is written, then the process ends. */
export async function stopPostmaster(cluster: Cluster, clock: Clock, logger: Logger): Promise<void> {
  const found = findPostmaster(cluster.directory)
  if (!found) return
  askToStop(found.pid, cluster)
  const startedAt = clock.now()
  let said = false
  while (findPostmaster(cluster.directory)?.pid === found.pid) {
    const waitedMs = clock.now() - startedAt
    if (waitedMs > STOP_PATIENCE_MS) {
      logger.warn('the embedded database is still writing and ends on its own', { pid: found.pid })
      return
    }
    if (!said && waitedMs > 5_000) {
      said = true
      logger.info('the embedded database is writing its last changes before it stops')
    }
    await pause(STOP_POLL_MS)
  }
}

/** Returns at once: also used by a process that is exiting. */
export function askToStop(pid: number, cluster: Cluster | undefined): void {
  try {
    if (process.platform === 'win32') {
      if (!cluster) return
      spawnSync(cluster.binaries.pgCtl, ['stop', '-D', cluster.directory, '-m', 'fast', '--no-wait'])
    } else {
      process.kill(pid, 'SIGINT')
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

const LARGEST_LOG_BYTES = 8 * 1024 * 1024

/** Bounds the log: the server appends, so the file can be copied aside and emptied under it. */
export async function boundLog(logFile: string): Promise<void> {
  const log = await open(logFile, 'r+').catch(() => null)
  if (!log) return
  try {
    const { size } = await log.stat()
    if (size <= LARGEST_LOG_BYTES) return
    await copyFile(logFile, `${logFile}.1`)
    await log.truncate(0)
  } finally {
    await log.close()
  }
}
