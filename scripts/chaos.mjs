// Builds what has changed, then lets the whole system run under faults: npm run chaos -- --minutes 10 --seed 1
//
// The processes run from a copy of the build: a build that is made meanwhile must not tidy away what a restarted process
// needs. The harness itself stands among the tests of the engine, whose servers and auditors it uses, and is loaded from
// its sources.
import { cpSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runnerImport } from 'vite'
import { BuildError, build } from './build.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const copy = join(root, '.build', `draft-${process.pid}-chaos`)
const harness = join(root, 'packages', 'engine', 'test', 'chaos', 'whole', 'main.ts')

try {
  cpSync(build(), copy, { recursive: true, verbatimSymlinks: true })
  const { module } = await runnerImport(harness, { root, configFile: false, logLevel: 'error' })
  process.exitCode = await module.main(process.argv.slice(2), copy)
} catch (error) {
  if (!(error instanceof BuildError)) throw error
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}
