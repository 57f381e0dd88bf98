import { BelfryError } from '@belfry/engine'
import { Problem } from './api/problem.ts'
import { StartFailure } from './start/start-failure.ts'
import { UsageError } from './usage-error.ts'

/** What a failure says to the person at the terminal, and to the program that looks at the exit code. */
export function describeFailure(error: unknown): { message: string; exitCode: number } {
  if (error instanceof UsageError) return { message: error.message, exitCode: 2 }
  if (error instanceof StartFailure) return { message: error.message, exitCode: error.exitCode }
  if (error instanceof Problem) return { message: error.message, exitCode: 1 }
  // Errors of the catalogue say what to do; anything else is a bug, and its place helps.
  if (error instanceof BelfryError) return { message: `${error.message} (${error.code})`, exitCode: 1 }
  return { message: error instanceof Error ? (error.stack ?? error.message) : String(error), exitCode: 1 }
}
