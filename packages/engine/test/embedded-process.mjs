// A process that uses an embedded server, for tests that kill it: `node embedded-process.mjs <module> <data directory>`.
// Says where the server is on one line of stdout; a line on stdin ends it: `stop` properly, `exit` without stopping.
import { createInterface } from 'node:readline'

const [module, dataDir] = process.argv.slice(2)
const { startEmbedded } = await import(module)
const say = (message) => process.stderr.write(`${message}\n`)
const logger = { debug: () => {}, info: say, warn: say, error: (message, fields) => say(`${message} ${fields?.error}`) }

const server = await startEmbedded({ dataDir, logger, settings: { fsync: 'off' } })
console.log(JSON.stringify(server.connection))

for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'exit') process.exit(0)
  if (line === 'stop') {
    await server.stop()
    process.exit(0)
  }
}
