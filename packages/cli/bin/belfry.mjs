#!/usr/bin/env -S node --max-semi-space-size=64
// In a checkout the sources may be newer than the last build, or never built: then they are built first. Belfry then runs
// in this very process, so that signals reach it.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

// npm and npx pass signals to the shell between them and us; some shells just die of them, and we must not run on alone.
if (process.env.npm_lifecycle_event) {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, 250)
  watch.unref()
}

const main = await findMain()
// Further processes are started from here too: from the same build, whatever is built meanwhile.
process.argv[1] = main
await import(pathToFileURL(main).href)

async function findMain() {
  const builder = new URL('../../../scripts/build.mjs', import.meta.url)
  if (!existsSync(builder)) return fileURLToPath(new URL('../dist/main.js', import.meta.url))
  const { BuildError, build, isFresh, sourceHash } = await import(builder.href)
  try {
    if (!isFresh(sourceHash())) console.error('building belfry …')
    return join(build(), 'cli', 'dist', 'main.js')
  } catch (error) {
    if (!(error instanceof BuildError)) throw error
    console.error(error.message)
    process.exit(1)
  }
}
