import type pg from 'pg'
import { BelfryError } from './errors.ts'
import { Complaints } from './input/read-fields.ts'
import { nearestName } from './job/nearest-name.ts'
import { type Logger, silentLogger } from './runtime/logger.ts'
import { ALL_ROLES, type Role } from './shards/roles.ts'
import { readDatabaseUrl, type ServerUse } from './store/database-url.ts'

export interface BelfryOptions {
  /** A connection string, or what `new pg.Client()` takes. Without it: an embedded PostgreSQL. */
  database?: string | pg.ClientConfig
  /** Where the embedded PostgreSQL keeps its data. */
  dataDir?: string
  /** The database schema. */
  schema?: string
  logger?: Logger
  /** How long a lease lasts without a heartbeat, in ms. */
  leaseMs?: number
  /** How long a canceled run may take to stop, in ms. */
  cancelGraceMs?: number
  /** How long `stop()` waits for running handlers before their runs are released, in ms. */
  drainMs?: number
  /** Days of history to keep. */
  historyDays?: number
  /** Slices of all jobs; fixed when the schema is first used. */
  shards?: number
  /** What this node does: all of it unless given. Handlers of this process are performed in any case. */
  roles?: readonly Role[]
  /** 32 bytes, base64 or hex: what secrets and payloads are encrypted with. Without it one is made and kept. */
  encryptionKey?: string
  /** Lets HTTP jobs call loopback and private addresses: for development. */
  allowPrivateTargets?: boolean
  /** A replica of the database that serves tenants' lists and history. */
  readDatabase?: string | pg.ClientConfig
  /** Where this installation is reached from outside: callback URLs begin with it. */
  publicUrl?: string
}

type Absent = 'database' | 'readDatabase' | 'encryptionKey' | 'publicUrl'
export type Settings = Required<Omit<BelfryOptions, Absent>> & {
  [Name in Absent]: NonNullable<BelfryOptions[Name]> | null
}

const WHOLE_NUMBERS = {
  leaseMs: { default: 30_000, min: 1_000, max: 3_600_000 },
  cancelGraceMs: { default: 10_000, min: 0, max: 3_600_000 },
  drainMs: { default: 10_000, min: 0, max: 3_600_000 },
  historyDays: { default: 400, min: 1, max: 36_500 },
  shards: { default: 64, min: 1, max: 4_096 },
} as const

const NAMES = [
  ...['database', 'dataDir', 'schema', 'logger', 'roles', 'encryptionKey', 'allowPrivateTargets', 'readDatabase'],
  ...['publicUrl', ...Object.keys(WHOLE_NUMBERS)],
]
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,47}$/

/** Checks what the caller of `Belfry.start` wrote and fills in the defaults. */
export function readOptions(options: BelfryOptions): Settings {
  const complaints = new Complaints()
  if (typeof options !== 'object' || options === null)
    throw new BelfryError('invalid_option', 'Belfry.start takes an object of options')
  for (const name of Object.keys(options)) {
    if (NAMES.includes(name)) continue
    complaints.add(name, `there is no option "${name}"`, nearestName(name, NAMES))
  }
  const number = (name: keyof typeof WHOLE_NUMBERS): number => {
    const { default: usual, min, max } = WHOLE_NUMBERS[name]
    const value = options[name] ?? usual
    if (!Number.isInteger(value) || value < min || value > max)
      complaints.add(name, `must be a whole number from ${min} to ${max}`)
    return value
  }
  const schema = options.schema ?? 'belfry'
  if (typeof schema !== 'string' || !SCHEMA_NAME.test(schema))
    complaints.add('schema', 'must be lower-case letters, digits and _, at most 48, not beginning with a digit')
  for (const path of ['database', 'readDatabase'] as const) {
    const message = problemOfConnection(options[path], path === 'database' ? 'writes' : 'reads')
    if (message !== null) complaints.add(path, message)
  }
  if (options.readDatabase !== undefined && options.database === undefined)
    complaints.add('readDatabase', 'is a replica of database, which is not given')
  if (options.dataDir !== undefined && (typeof options.dataDir !== 'string' || options.dataDir === ''))
    complaints.add('dataDir', 'must be the path of a directory')
  if (options.logger !== undefined && !isLogger(options.logger))
    complaints.add('logger', 'must have the methods debug, info, warn and error')
  checkService(complaints, options)
  const settings: Settings = {
    database: options.database ?? null,
    readDatabase: options.readDatabase ?? null,
    encryptionKey: options.encryptionKey ?? null,
    publicUrl: options.publicUrl?.replace(/\/+$/, '') ?? null,
    allowPrivateTargets: options.allowPrivateTargets ?? false,
    roles: options.roles ?? ALL_ROLES,
    dataDir: options.dataDir ?? '.belfry',
    schema,
    logger: options.logger ?? silentLogger,
    leaseMs: number('leaseMs'),
    cancelGraceMs: number('cancelGraceMs'),
    drainMs: number('drainMs'),
    historyDays: number('historyDays'),
    shards: number('shards'),
  }
  const [first] = complaints.list
  if (first) {
    const hint = first.suggestion ? `; did you mean "${first.suggestion}"?` : ''
    throw new BelfryError('invalid_option', `${first.path}: ${first.message}${hint}`, { complaints: complaints.list })
  }
  return settings
}

function checkService(complaints: Complaints, options: BelfryOptions): void {
  const { roles, encryptionKey, allowPrivateTargets, publicUrl } = options
  if (roles !== undefined && (!Array.isArray(roles) || roles.length === 0))
    complaints.add('roles', `must be a list of ${ALL_ROLES.join(', ')}`)
  for (const role of Array.isArray(roles) ? roles : []) {
    if (ALL_ROLES.includes(role)) continue
    const suggestion = typeof role === 'string' ? nearestName(role, ALL_ROLES) : undefined
    complaints.add('roles', `must be of ${ALL_ROLES.join(', ')}`, suggestion)
  }
  if (encryptionKey !== undefined && (typeof encryptionKey !== 'string' || encryptionKey === ''))
    complaints.add('encryptionKey', 'must be 32 bytes as base64 or hex')
  if (allowPrivateTargets !== undefined && typeof allowPrivateTargets !== 'boolean')
    complaints.add('allowPrivateTargets', 'must be true or false')
  if (publicUrl !== undefined && !isWebAddress(publicUrl))
    complaints.add('publicUrl', 'must be an address such as https://belfry.example.com')
}

export function isWebAddress(value: unknown): boolean {
  return typeof value === 'string' && /^https?:\/\/[^/?#]/.test(value) && URL.canParse(value)
}

/** An empty text is a variable that was not set; taking it for the default server would surprise. */
function problemOfConnection(value: unknown, use: ServerUse): string | null {
  if (value === undefined) return null
  const isText = typeof value === 'string' && value !== ''
  if (!isText && (typeof value !== 'object' || value === null))
    return 'must be a connection string or a pg client configuration'
  const text = isText ? value : (value as pg.ClientConfig).connectionString
  const read = text === undefined ? null : readDatabaseUrl(text, use)
  return typeof read === 'string' ? read : null
}

const isLogger = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (['debug', 'info', 'warn', 'error'] as const).every((level) => typeof (value as Logger)[level] === 'function')
