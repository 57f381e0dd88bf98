import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, lchown, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { BelfryError } from '../../errors.ts'
import { systemRandom } from '../../runtime/random.ts'
import { asServerUser, type Binaries, serverEnvironment } from './binaries.ts'
import { embeddedFailure } from './failure.ts'
import { replaceFile } from './private-file.ts'
import type { ServerUser } from './server-user.ts'
import { HOST_RULES, type ServerSettings, settingsFile } from './settings.ts'

export const ROLE = 'belfry'

export interface Cluster {
  /** PostgreSQL's own data directory. */
  directory: string
  passwordFile: string
  binaries: Binaries
  user: ServerUser | null
}

/**
 * Gives the server's programs a path to a directory of their user.
 *
 * Root's directories (/root, 0700) cannot be entered by that user, but the data should stay where its owner put it.
 * On Linux an open directory that is inherited can be entered through /proc/self/fd without passing its parents, and
 * PostgreSQL's own processes, which all are forks, inherit it in turn.
 */
export async function withDirectory<T>(
  directory: string,
  user: ServerUser | null,
  run: (path: string, handle: number | 'ignore') => Promise<T>,
): Promise<T> {
  if (!user?.switched || process.platform !== 'linux') return run(directory, 'ignore')
  const handle = await open(directory, 'r')
  try {
    return await run('/proc/self/fd/3', handle.fd)
  } finally {
    await handle.close()
  }
}

/** Makes the cluster unless it is there. Called under the lock; a killed attempt leaves only a draft. */
export async function ensureCluster(
  cluster: Cluster,
  dataDir: string,
  expectation: 'made if missing' | 'expected',
): Promise<void> {
  const version = await versionOf(cluster.directory)
  if (version === null && expectation === 'expected') {
    throw new BelfryError('embedded_database', `the data in ${cluster.directory} is gone; was it removed or unmounted?`)
  }
  if (version === null) {
    await removeDrafts(dataDir)
    await makeCluster(cluster, dataDir)
  } else if (version !== cluster.binaries.major) {
    throw new BelfryError(
      'embedded_database',
      `${cluster.directory} was made by PostgreSQL ${version}, and this Belfry brings PostgreSQL ${cluster.binaries.major}; ` +
        `dump it with the Belfry that made it and restore it here, or choose another data directory (BELFRY_DATA_DIR)`,
    )
  }
  if (version !== null) await giveToServerUser(cluster)
}

export async function writeSettings(cluster: Cluster, settings: ServerSettings): Promise<void> {
  const owner = cluster.user ?? undefined
  const includes = existsSync(join(cluster.directory, 'custom.conf')) ? ['custom.conf'] : []
  await replaceFile(join(cluster.directory, 'postgresql.conf'), settingsFile(settings, includes), 0o600, owner)
  await replaceFile(join(cluster.directory, 'pg_hba.conf'), HOST_RULES, 0o600, owner)
}

async function versionOf(directory: string): Promise<string | null> {
  try {
    return (await readFile(join(directory, 'PG_VERSION'), 'utf8')).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return null
  }
}

/** Root copied the data here (a restored backup): the server's user must own all of it. */
async function giveToServerUser({ directory, user }: Cluster): Promise<void> {
  if (!user?.switched || (await stat(directory)).uid !== 0) return
  for (const entry of await readdir(directory, { withFileTypes: true, recursive: true })) {
    await lchown(join(entry.parentPath, entry.name), user.uid, user.gid)
  }
  // Last, because it is what tells that this is done.
  await chown(directory, user.uid, user.gid)
}

async function makeCluster(cluster: Cluster, dataDir: string): Promise<void> {
  await replaceFile(
    cluster.passwordFile,
    systemRandom.bytes(24).toString('base64url'),
    0o600,
    cluster.user ?? undefined,
  )
  const draft = join(dataDir, `postgres.draft-${systemRandom.bytes(4).toString('hex')}`)
  await mkdir(draft, { mode: 0o700 })
  if (cluster.user?.switched) await chown(draft, cluster.user.uid, cluster.user.gid)

  const password = await open(cluster.passwordFile, 'r')
  try {
    const passwordPath = cluster.user?.switched ? '/dev/fd/4' : cluster.passwordFile
    const { code, said } = await withDirectory(draft, cluster.user, (path, handle) =>
      initdb(cluster, ['-D', path, `--pwfile=${passwordPath}`], [handle, password.fd]),
    )
    if (code !== 0) throw embeddedFailure('the embedded database cannot be created', dataDir, said)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  } finally {
    await password.close()
  }
  await rename(draft, cluster.directory)
  await syncDirectory(dataDir)
}

function initdb(
  { binaries, user }: Cluster,
  place: string[],
  handles: (number | 'ignore')[],
): Promise<{ code: number | null; said: string }> {
  const trust = process.platform === 'win32' ? 'scram-sha-256' : 'trust'
  const child = spawn(
    binaries.initdb,
    [...place, '-U', ROLE, '--encoding=UTF8', '--locale=C', `--auth-local=${trust}`, '--auth-host=scram-sha-256'],
    {
      ...serverEnvironment(),
      ...asServerUser(user),
      cwd: process.platform === 'win32' ? undefined : '/',
      stdio: ['ignore', 'ignore', 'pipe', ...handles],
      windowsHide: true,
    },
  )
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-8_000)
  })
  return new Promise((done, failed) => {
    child.once('error', failed)
    child.once('close', (code) => done({ code, said }))
  })
}

async function removeDrafts(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (name.startsWith('postgres.draft-')) await rm(join(dataDir, name), { recursive: true, force: true })
  }
}

async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(directory, 'r')
  await handle.sync().finally(() => handle.close())
}
