import { createHash } from 'node:crypto'
import { chmod, cp, lstat, mkdir, readdir, readFile, realpath, rename, rm, stat, symlink } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { BelfryError } from '../../errors.ts'
import { systemRandom } from '../../runtime/random.ts'
import { isRunning } from './process-identity.ts'
import { canReach, type ServerUser } from './server-user.ts'

/** The package of this platform as npm installed it. */
export interface InstalledPackage {
  native: string
  version: string
}

/**
 * Copies the programs to a place the server's user can read and nobody else can write, completing what an install
 * script would have done. A finished copy appears by one rename, so any number of processes may do this at once and
 * any of them may be killed.
 */
export async function copyToCache(
  installed: InstalledPackage,
  user: ServerUser | null,
  places: readonly string[] = cachePlaces(),
): Promise<string> {
  const name = `postgres-${installed.version}-${await fingerprint(installed.native)}`
  const problems: string[] = []
  for (const place of places) {
    try {
      const cache = await openCache(place, user)
      return (await find(cache, name)) ?? (await copy(installed.native, cache, name))
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error))
    }
  }
  throw new BelfryError(
    'embedded_database',
    `the PostgreSQL programs cannot be used where they are, and there is no place to copy them to: ${problems.join('; ')}`,
  )
}

function cachePlaces(): string[] {
  const uid = process.getuid?.() ?? 0
  const temporary = join(tmpdir(), `belfry-cache-${uid}`)
  return uid === 0 ? ['/var/cache/belfry', temporary] : [join(homedir(), '.cache', 'belfry'), temporary]
}

async function openCache(place: string, user: ServerUser | null): Promise<string> {
  await mkdir(place, { recursive: true, mode: 0o755 })
  await refuseIfOthersWrite(place)
  await chmod(place, 0o755)
  const real = await realpath(place)
  if (user && !canReach(user, real)) throw new Error(`${place} cannot be reached by uid ${user.uid}`)
  return real
}

async function refuseIfOthersWrite(path: string): Promise<void> {
  const found = await lstat(path)
  const uid = process.getuid?.() ?? 0
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o022) !== 0) {
    throw new Error(`${path} is not a directory that only uid ${uid} can write`)
  }
}

async function find(cache: string, name: string): Promise<string | null> {
  const path = join(cache, name)
  try {
    await refuseIfOthersWrite(path)
    return path
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

async function copy(native: string, cache: string, name: string): Promise<string> {
  await removeAbandonedDrafts(cache)
  const draft = join(cache, `draft-${process.pid}-${systemRandom.bytes(4).toString('hex')}`)
  try {
    await cp(native, draft, { recursive: true, verbatimSymlinks: true })
    await completeLinks(draft)
    await openToReaders(draft)
    await rename(draft, join(cache, name))
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    // Another process may have finished the same copy first.
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
  return join(cache, name)
}

/** `pg-symlinks.json` lists the links that npm cannot pack, with paths from the package's root. */
async function completeLinks(native: string): Promise<void> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const path = join(native, relative('native', target))
    await symlink(relative(dirname(target), source), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

async function openToReaders(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    const full = join(entry.parentPath, entry.name)
    if (entry.isSymbolicLink()) continue
    const runnable = entry.isDirectory() || entry.parentPath.endsWith('bin') || entry.name.includes('.so')
    await chmod(full, runnable ? 0o755 : 0o644)
  }
  await chmod(path, 0o755)
}

async function removeAbandonedDrafts(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const pid = /^draft-(\d+)-/.exec(name)?.[1]
    if (pid && !isRunning(Number(pid))) await rm(join(cache, name), { recursive: true, force: true })
  }
}

async function fingerprint(native: string): Promise<string> {
  const hash = createHash('sha256')
  const entries = await readdir(native, { withFileTypes: true, recursive: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  for (const file of files.sort()) hash.update(`${relative(native, file)} ${(await stat(file)).size}\n`)
  return hash.digest('hex').slice(0, 12)
}
