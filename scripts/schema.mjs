// `npm run schema`: applies the migrations to an empty database and writes packages/engine/schema.sql from what is there.
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { BuildError, build } from './build.mjs'
import { describeSchema } from './describe-schema.mjs'

const engine = join(dirname(dirname(fileURLToPath(import.meta.url))), 'packages', 'engine')
const target = join(engine, 'schema.sql')
// The engine's own driver: the root has none.
const pg = createRequire(join(engine, 'package.json'))('pg')
const logger = { debug: () => {}, info: () => {}, warn: console.error, error: console.error }

async function main() {
  const store = join(build(), 'engine', 'dist', 'store')
  const { startEmbedded } = await import(pathToFileURL(join(store, 'embedded', 'embedded-server.js')).href)
  const { migrate } = await import(pathToFileURL(join(store, 'migrator.js')).href)

  const place = realpathSync(mkdtempSync(join(tmpdir(), 'belfry-schema-')))
  const server = await startEmbedded({ dataDir: join(place, 'data'), logger, settings: { fsync: 'off' } })
  const client = new pg.Client({ ...server.connection, options: '-c search_path=belfry' })
  try {
    await client.connect()
    await migrate(client, { schema: 'belfry', logger })
    writeFileSync(target, await describeSchema(client, 'belfry'))
  } finally {
    await client.end()
    await server.stop()
    rmSync(place, { recursive: true, force: true })
  }
}

main().catch((error) => {
  console.error(error instanceof BuildError ? error.message : error)
  process.exitCode = 1
})
