import { BelfryError } from '@belfry/engine'
import { Problem } from './api/problem.ts'
import { StartFailure } from './start/start-failure.ts'
import { UsageError } from './usage-error.ts'

/** Options of the engine, as somebody at the terminal knows them. */
const VARIABLES: Readonly<Record<string, string>> = {
  database: 'BELFRY_DATABASE_URL',
  readDatabase: 'BELFRY_DATABASE_READ_URL',
  dataDir: 'BELFRY_DATA_DIR',
  encryptionKey: 'BELFRY_ENCRYPTION_KEY',
  publicUrl: 'BELFRY_PUBLIC_URL',
  roles: 'BELFRY_ROLES',
}

/** What a failure says to the person at the terminal, and to the program that looks at the exit code. */
export function describeFailure(error: unknown): { message: string; exitCode: number } {
  if (error instanceof UsageError) return { message: error.message, exitCode: 2 }
  if (error instanceof StartFailure) return { message: error.message, exitCode: error.exitCode }
  if (error instanceof Problem) return { message: error.message, exitCode: 1 }
  if (error instanceof BelfryError && error.code === 'invalid_option') {
    const [{ path, message } = { path: '', message: error.message }] = error.complaints
    return { message: `${VARIABLES[path] ?? path} ${message}`.trim(), exitCode: 2 }
  }
  // Errors of the catalogue say what to do; anything else is a bug, and its place helps.
  if (error instanceof BelfryError) return { message: `${error.message} (${error.code})`, exitCode: 1 }
  return { message: error instanceof Error ? (error.stack ?? error.message) : String(error), exitCode: 1 }
}
