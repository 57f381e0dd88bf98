import cluster from 'node:cluster'
import { type Logger, lineLogger } from '@belfry/engine'
import type { Call, Command } from '../command/command.ts'
import { describeFailure } from '../failure.ts'
import { keepAdminKey } from '../start/admin-key.ts'
import { startNode } from '../start/node.ts'
import { runOneOfSeveral } from '../start/one-of-several.ts'
import { startProcesses } from '../start/processes.ts'
import { runUntilSignal } from '../start/run-until-signal.ts'
import { readStartOptions, unknownVariables } from '../start/start-options.ts'
import { welcome } from '../start/welcome.ts'

export const start: Command = {
  name: 'start',
  summary: 'run a node (also without any word)',
  operands: [],
  flags: {},
  details: `  PORT                          8080      where it serves; 0 picks a free port
  BELFRY_DATA_DIR               .belfry   where the embedded database and the made keys are kept
  BELFRY_DATABASE_URL                     a PostgreSQL of your own instead of the embedded one
  BELFRY_DATABASE_READ_URL                a replica for lists and history
  BELFRY_ADMIN_KEY                        32 characters or more; without it one is made and kept in the data directory
  BELFRY_ENCRYPTION_KEY                   32 bytes in base64 or hex, for secrets and payloads
  BELFRY_ALLOW_PRIVATE_TARGETS  off       1 lets HTTP targets be on loopback and private networks
  BELFRY_PUBLIC_URL                       how targets reach this installation, for callbacks
  BELFRY_PROCESSES              1         processes behind the port
  BELFRY_ROLES                  all       of api, promoter, dispatcher, archivist`,
  run,
}

async function run({ environment, terminal }: Call): Promise<void> {
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
