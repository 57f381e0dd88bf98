// Writes the types of the HTTP contract, packages/client/src/wire.ts, from the server's own description. The server is
// loaded from its sources, so that a client that does not compile yet against a new route does not stand in the way.
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defaultServerConditions, runnerImport } from 'vite'
import { describeWire } from './describe-wire.mjs'

const packages = join(dirname(dirname(fileURLToPath(import.meta.url))), 'packages')
const conditions = ['belfry:source', ...defaultServerConditions]

async function load(path) {
  const settings = { configFile: false, logLevel: 'error', resolve: { conditions }, ssr: { resolve: { conditions } } }
  return (await runnerImport(join(packages, path), settings)).module
}

const { createApp } = await load('server/src/create-app.ts')
const { ERRORS } = await load('engine/src/errors.ts')
const app = await createApp({ service: () => null, adminKey: null })
const { body } = await app.inject('/openapi.json')
await app.close()
writeFileSync(join(packages, 'client', 'src', 'wire.ts'), describeWire(JSON.parse(body), ERRORS))
