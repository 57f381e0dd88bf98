export interface StartOptions {
  port: number
  dataDir: string
  /** Without it the embedded database is used. */
  database?: string
}

/** A mistake in what the user asked for: one line that says what is wrong and what would be right. */
export class UsageError extends Error {}

type Environment = Readonly<Record<string, string | undefined>>

export function readStartOptions(environment: Environment): StartOptions {
  const options: StartOptions = { port: readPort(environment.PORT), dataDir: environment.BELFRY_DATA_DIR || '.belfry' }
  const database = environment.BELFRY_DATABASE_URL
  return database ? { ...options, database: checkDatabaseUrl(database) } : options
}

function readPort(text: string | undefined): number {
  if (text === undefined || text === '') return 8080
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new UsageError(`PORT is ${JSON.stringify(text)}, but must be a number from 0 to 65535 (0 picks a free port)`)
}

/** The value is never repeated in a message: it may hold a password. */
function checkDatabaseUrl(text: string): string {
  const expected = 'must look like postgres://user:password@host:5432/database'
  if (!URL.canParse(text)) throw new UsageError(`BELFRY_DATABASE_URL is not a URL; it ${expected}`)
  const { protocol } = new URL(text)
  if (protocol === 'postgres:' || protocol === 'postgresql:') return text
  throw new UsageError(`BELFRY_DATABASE_URL begins with ${protocol}//, but ${expected}`)
}
