#!/usr/bin/env node
import { BelfryError, type Logger, lineLogger } from '@belfry/engine'
import { readStartOptions, UsageError } from './options.ts'
import { type Running, start } from './start.ts'

const USAGE = `usage: belfry [start]

  start    run a node (also without any word)

  PORT                  8080      where it serves; 0 picks a free port
  BELFRY_DATA_DIR       .belfry   where the embedded database keeps its data
  BELFRY_DATABASE_URL             a PostgreSQL of your own instead of the embedded one`

async function main(words: readonly string[]): Promise<void> {
  const [command = 'start', ...rest] = words
  if (['help', '--help', '-h'].includes(command)) {
    console.log(USAGE)
    return
  }
  if (command !== 'start' || rest.length > 0)
    throw new UsageError(`there is no \`belfry ${words.join(' ')}\`\n${USAGE}`)
  await runUntilSignal(readStartOptions(process.env))
}

async function runUntilSignal(options: ReturnType<typeof readStartOptions>): Promise<void> {
  const logger = terminalLogger()
  let running: Running | null = null
  let stopping = false

  const onSignal = (signal: NodeJS.Signals) => {
    // A second signal, or one while nothing has started that would need to be drained, ends the process at once.
    if (stopping || !running) process.exit(stopping ? 130 : 0)
    stopping = true
    logger.info('stopping; once more stops at once', { signal })
    running.stop().then(() => process.exit(0), fail)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)

  running = await start(options, logger)
  console.log(`belfry ready on ${running.url}`)
}

function terminalLogger(): Logger {
  const logger = lineLogger((line) => console.error(line))
  return { ...logger, debug: () => {} }
}

function fail(error: unknown): never {
  if (error instanceof UsageError) {
    console.error(`belfry: ${error.message}`)
    process.exit(2)
  }
  // Errors of the catalogue say what to do; anything else is a bug, and its place helps.
  if (error instanceof BelfryError) console.error(`belfry: ${error.message} (${error.code})`)
  else console.error('belfry:', error)
  process.exit(1)
}

main(process.argv.slice(2)).catch(fail)
