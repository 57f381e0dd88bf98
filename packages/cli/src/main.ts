import { text } from 'node:stream/consumers'
import { describeFailure } from './failure.ts'
import { runCommand } from './run-command.ts'

// Whoever reads our answer may have had enough (`belfry jobs list | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

runCommand(process.argv.slice(2), process.env, {
  out: (line) => console.log(line),
  err: (line) => console.error(line),
  width: process.stdout.isTTY ? process.stdout.columns : null,
  input: () => text(process.stdin),
}).catch((error: unknown) => {
  const { message, exitCode } = describeFailure(error)
  console.error(`belfry: ${message}`)
  // The other processes or connections of a failed start must not keep this one alive.
  process.exit(exitCode)
})
