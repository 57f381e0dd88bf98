// `npm start`: builds Belfry if its sources changed, then runs it in this very process, so that signals reach it.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BuildError, build, isFresh, sourceHash } from './build.mjs'

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
