// `npm start`: builds Belfry if its sources changed, then runs it in this very process, so that signals reach it.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BuildError, build, isFresh, sourceHash } from './build.mjs'

// npm passes signals to the shell between it and us; some shells just die of them, and we must not run on alone.
if (process.env.npm_lifecycle_event) {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, 250)
  watch.unref()
}

try {
  if (!isFresh(sourceHash())) console.log('building belfry …')
  const main = join(build(), 'cli', 'dist', 'main.js')
  process.argv[1] = main
  await import(pathToFileURL(main).href)
} catch (error) {
  if (!(error instanceof BuildError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
