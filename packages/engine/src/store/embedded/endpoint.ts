import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { replaceFile } from './private-file.ts'
import { canReach, type ServerUser } from './server-user.ts'

/** Where the server listens: a Unix socket in a private directory, or, where that is impossible, a loopback port. */
export type Endpoint = { kind: 'socket'; directory: string } | { kind: 'port'; port: number }

/** The shortest limit for a socket's path is 104 bytes (macOS), its end included. */
const LONGEST_SOCKET_PATH = 103
export const SOCKET_PORT = 5432

export function endpointArguments(endpoint: Endpoint): string[] {
  const settings =
    endpoint.kind === 'socket'
      ? ['listen_addresses=', `port=${SOCKET_PORT}`, `unix_socket_directories="${endpoint.directory}"`]
      : ['listen_addresses=127.0.0.1', `port=${endpoint.port}`, 'unix_socket_directories=']
  return settings.flatMap((setting) => ['-c', setting])
}

export async function readEndpoint(file: string): Promise<Endpoint | null> {
  try {
    const value = JSON.parse(await readFile(file, 'utf8')) as Partial<Record<string, unknown>>
    if (value.kind === 'socket' && typeof value.directory === 'string') {
      return { kind: 'socket', directory: value.directory }
    }
    if (value.kind === 'port' && typeof value.port === 'number') return { kind: 'port', port: value.port }
    return null
  } catch {
    return null
  }
}

/**
 * Takes the recorded endpoint again if it is still ours, because others hold connections to it; else makes one. Called
 * only when no server runs on the cluster.
 */
export async function openEndpoint(file: string, user: ServerUser | null): Promise<Endpoint> {
  const recorded = await readEndpoint(file)
  if (recorded?.kind === 'socket' && user && reopenDirectory(recorded.directory, user)) return recorded
  if (recorded?.kind === 'port' && (await isFree(recorded.port))) return recorded
  const directory = user ? makeDirectory(user) : null
  const made: Endpoint = directory ? { kind: 'socket', directory } : { kind: 'port', port: await freePort() }
  await replaceFile(file, JSON.stringify(made), 0o644)
  return made
}

function makeDirectory(user: ServerUser): string | null {
  for (const candidate of [tmpdir(), '/tmp', '/var/tmp']) {
    try {
      const place = realpathSync(candidate)
      if (!canReach(user, place)) continue
      if (Buffer.byteLength(join(place, 'belfry-XXXXXX', `.s.PGSQL.${SOCKET_PORT}`)) > LONGEST_SOCKET_PATH) continue
      if (/["\\\n]/.test(place)) continue
      const directory = mkdtempSync(join(place, 'belfry-'))
      if (user.switched) chownSync(directory, user.uid, user.gid)
      return directory
    } catch {
      // The next place may do.
    }
  }
  return null
}

function reopenDirectory(directory: string, user: ServerUser): boolean {
  try {
    mkdirSync(directory, { mode: 0o700 })
    chmodSync(directory, 0o700)
    if (user.switched) chownSync(directory, user.uid, user.gid)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
  }
  const found = lstatSync(directory)
  if (!found.isDirectory() || found.uid !== user.uid || (found.mode & 0o077) !== 0) return false
  // Left by a killed server. PostgreSQL would refuse to start if the number in the lock has been given to another
  // process of the same user, or belongs to a zombie; nobody but the server of this cluster ever uses the directory.
  rmSync(join(directory, `.s.PGSQL.${SOCKET_PORT}.lock`), { force: true })
  rmSync(join(directory, `.s.PGSQL.${SOCKET_PORT}`), { force: true })
  return true
}

function freePort(): Promise<number> {
  return listenOnce(0) as Promise<number>
}

async function isFree(port: number): Promise<boolean> {
  return (await listenOnce(port).catch(() => null)) === port
}

function listenOnce(port: number): Promise<number> {
  return new Promise((found, failed) => {
    const probe = createServer()
    probe.once('error', failed)
    probe.listen(port, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => found(typeof address === 'object' && address ? address.port : port))
    })
  })
}
