import cluster from 'node:cluster'
import { type Logger, lineLogger } from '@belfry/engine'
import { describeFailure } from '../failure.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { keepAdminKey } from './admin-key.ts'
import { startNode } from './node.ts'
import { runOneOfSeveral } from './one-of-several.ts'
import { startProcesses } from './processes.ts'
import { runUntilSignal } from './run-until-signal.ts'
import { type Environment, readStartOptions, unknownVariables } from './start-options.ts'
import { welcome } from './welcome.ts'

/** `belfry start`, as the only process, as the first of several, or as one of them. */
export async function runStart(environment: Environment, terminal: Terminal): Promise<void> {
  const options = readStartOptions(environment)
  const logger = terminalLogger(environment.BELFRY_PROCESS, (line) => terminal.note(line))
  const adminKey = options.adminKey === undefined ? await keepAdminKey(options.dataDir) : null
  const key = options.adminKey ?? (adminKey?.key as string)
  if (cluster.isWorker) return runOneOfSeveral(options, key, logger)

  for (const { name, nearest } of unknownVariables(environment)) {
    logger.warn(`${name} is not a variable of Belfry and is ignored${nearest ? `; did you mean ${nearest}?` : ''}`)
  }
  const running = await runUntilSignal(
    () => (options.processes === 1 ? startNode(options, key, logger) : startProcesses(options, logger)),
    {
      logger,
      failed: (error) => {
        const { message, exitCode } = describeFailure(error)
        terminal.note(`belfry: ${message}`)
        process.exit(exitCode)
      },
    },
  )
  terminal.answer({ url: running.url }, welcome({ url: running.url, options, adminKey, environment }))
}

function terminalLogger(process: string | undefined, write: (line: string) => void): Logger {
  const logger = lineLogger((line) => write(process ? `[${process}] ${line}` : line))
  return { ...logger, debug: () => {} }
}
