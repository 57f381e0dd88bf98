import { nearestName, type Role } from '@belfry/engine'
import { UsageError } from '../usage-error.ts'
import { checkAdminKey, checkDatabaseUrl, checkEncryptionKey, checkPublicUrl } from './secrets-and-urls.ts'

const ROLES: readonly Role[] = ['api', 'promoter', 'dispatcher', 'archivist']

export interface StartOptions {
  port: number
  dataDir: string
  /** How many processes serve the port. */
  processes: number
  roles: readonly Role[]
  allowPrivateTargets: boolean
  /** Without it the embedded database is used. */
  database?: string
  readDatabase?: string
  /** Without it one is made and kept in the data directory. */
  adminKey?: string
  encryptionKey?: string
  /** How targets reach this installation, for callbacks. */
  publicUrl?: string
}

export type Environment = Readonly<Record<string, string | undefined>>

const MAX_PROCESSES = 128

/** Everything a start takes from the environment. An empty value counts as not set. */
export function readStartOptions(environment: Environment): StartOptions {
  const given = <T>(name: string, field: string, read: (text: string) => T): Record<string, T> => {
    const text = environment[name]
    return text ? { [field]: read(text) } : {}
  }
  const options: StartOptions = {
    port: readPort(environment.PORT),
    dataDir: environment.BELFRY_DATA_DIR || '.belfry',
    processes: readProcesses(environment.BELFRY_PROCESSES),
    roles: readRoles(environment.BELFRY_ROLES),
    allowPrivateTargets: readSwitch('BELFRY_ALLOW_PRIVATE_TARGETS', environment.BELFRY_ALLOW_PRIVATE_TARGETS),
    ...given('BELFRY_DATABASE_URL', 'database', (text) => checkDatabaseUrl('BELFRY_DATABASE_URL', text, 'writes')),
    ...given('BELFRY_DATABASE_READ_URL', 'readDatabase', (text) =>
      checkDatabaseUrl('BELFRY_DATABASE_READ_URL', text, 'reads'),
    ),
    ...given('BELFRY_ADMIN_KEY', 'adminKey', checkAdminKey),
    ...given('BELFRY_ENCRYPTION_KEY', 'encryptionKey', checkEncryptionKey),
    ...given('BELFRY_PUBLIC_URL', 'publicUrl', checkPublicUrl),
  }
  if (options.readDatabase !== undefined && options.database === undefined) {
    throw new UsageError(
      'BELFRY_DATABASE_READ_URL is set without BELFRY_DATABASE_URL, but the embedded database has no replica; set both or neither',
    )
  }
  return options
}

const KNOWN = [
  'BELFRY_ADMIN_KEY',
  'BELFRY_ALLOW_PRIVATE_TARGETS',
  'BELFRY_API_KEY',
  'BELFRY_DATABASE_READ_URL',
  'BELFRY_DATABASE_URL',
  'BELFRY_DATA_DIR',
  'BELFRY_ENCRYPTION_KEY',
  'BELFRY_PROCESSES',
  'BELFRY_PUBLIC_URL',
  'BELFRY_ROLES',
  'BELFRY_TENANT',
  'BELFRY_URL',
]

/** A misspelt variable would be ignored in silence, and a node on the wrong database is no small surprise. */
export function unknownVariables(environment: Environment): { name: string; nearest?: string }[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith('BELFRY_') && !KNOWN.includes(name))
    .map((name) => {
      const nearest = nearestName(name, KNOWN)
      return nearest === undefined ? { name } : { name, nearest }
    })
}

function readPort(text: string | undefined): number {
  if (!text) return 8080
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new UsageError(`PORT is ${JSON.stringify(text)}, but must be a number from 0 to 65535 (0 picks a free port)`)
}

function readProcesses(text: string | undefined): number {
  if (!text) return 1
  const processes = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN
  if (processes >= 1 && processes <= MAX_PROCESSES) return processes
  throw new UsageError(
    `BELFRY_PROCESSES is ${JSON.stringify(text)}, but must be a number from 1 to ${MAX_PROCESSES}; one per core is a good start`,
  )
}

function readRoles(text: string | undefined): readonly Role[] {
  if (!text) return ROLES
  const words = text.split(',').map((word) => word.trim())
  for (const word of words) {
    if (ROLES.some((role) => role === word)) continue
    const nearest = nearestName(word, ROLES)
    throw new UsageError(
      `BELFRY_ROLES holds ${JSON.stringify(word)}, but must be one or more of ${ROLES.join(', ')}, separated by commas` +
        (nearest ? `; did you mean ${nearest}?` : ''),
    )
  }
  return ROLES.filter((role) => words.includes(role))
}

function readSwitch(name: string, text: string | undefined): boolean {
  if (!text || text === '0') return false
  if (text === '1') return true
  throw new UsageError(`${name} is ${JSON.stringify(text)}, but must be 1 (on) or empty (off)`)
}
