import type pg from 'pg'
import { BelfryError, type Complaint } from './errors.ts'
import { nearestName } from './job/nearest-name.ts'
import { type Logger, silentLogger } from './runtime/logger.ts'

export interface BelfryOptions {
  /** A connection string, or what `new pg.Client()` takes. Without it: an embedded PostgreSQL. */
  database?: string | pg.ClientConfig
  /** Where the embedded PostgreSQL keeps its data. */
  dataDir?: string
  /** The database schema. */
  schema?: string
  logger?: Logger
  /** Connections to the database. */
  connections?: number
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
}

export type Settings = Required<Omit<BelfryOptions, 'database'>> & { database: string | pg.ClientConfig | null }

const WHOLE_NUMBERS = {
  connections: { default: 8, min: 3, max: 200 },
  leaseMs: { default: 30_000, min: 1_000, max: 3_600_000 },
  cancelGraceMs: { default: 10_000, min: 0, max: 3_600_000 },
  drainMs: { default: 10_000, min: 0, max: 3_600_000 },
  historyDays: { default: 400, min: 1, max: 36_500 },
  shards: { default: 64, min: 1, max: 4_096 },
} as const

const NAMES = ['database', 'dataDir', 'schema', 'logger', ...Object.keys(WHOLE_NUMBERS)]
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,47}$/

/** Checks what the caller of `Belfry.start` wrote and fills in the defaults. */
export function readOptions(options: BelfryOptions): Settings {
  const complaints: Complaint[] = []
  if (typeof options !== 'object' || options === null)
    throw new BelfryError('invalid_option', 'Belfry.start takes an object of options')
  for (const name of Object.keys(options)) {
    if (NAMES.includes(name)) continue
    const suggestion = nearestName(name, NAMES)
    complaints.push({ path: name, message: `there is no option "${name}"`, ...(suggestion ? { suggestion } : {}) })
  }
  const number = (name: keyof typeof WHOLE_NUMBERS): number => {
    const { default: usual, min, max } = WHOLE_NUMBERS[name]
    const value = options[name] ?? usual
    if (!Number.isInteger(value) || value < min || value > max)
      complaints.push({ path: name, message: `must be a whole number from ${min} to ${max}` })
    return value
  }
  const schema = options.schema ?? 'belfry'
  if (typeof schema !== 'string' || !SCHEMA_NAME.test(schema)) {
    complaints.push({
      path: 'schema',
      message: 'must be lower-case letters, digits and _, at most 48, not beginning with a digit',
    })
  }
  if (options.database !== undefined && !isConnection(options.database))
    complaints.push({ path: 'database', message: 'must be a connection string or a pg client configuration' })
  if (options.dataDir !== undefined && (typeof options.dataDir !== 'string' || options.dataDir === ''))
    complaints.push({ path: 'dataDir', message: 'must be the path of a directory' })
  if (options.logger !== undefined && !isLogger(options.logger))
    complaints.push({ path: 'logger', message: 'must have the methods debug, info, warn and error' })
  const settings: Settings = {
    database: options.database ?? null,
    dataDir: options.dataDir ?? '.belfry',
    schema,
    logger: options.logger ?? silentLogger,
    connections: number('connections'),
    leaseMs: number('leaseMs'),
    cancelGraceMs: number('cancelGraceMs'),
    drainMs: number('drainMs'),
    historyDays: number('historyDays'),
    shards: number('shards'),
  }
  const [first] = complaints
  if (first) {
    const hint = first.suggestion ? `; did you mean "${first.suggestion}"?` : ''
    throw new BelfryError('invalid_option', `${first.path}: ${first.message}${hint}`, { complaints })
  }
  return settings
}

/** An empty text is a variable that was not set; taking it for the default server would surprise. */
const isConnection = (value: unknown): boolean =>
  typeof value === 'string' ? value !== '' : typeof value === 'object' && value !== null

const isLogger = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (['debug', 'info', 'warn', 'error'] as const).every((level) => typeof (value as Logger)[level] === 'function')
