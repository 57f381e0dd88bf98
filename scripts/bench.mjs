// Builds what has changed, then runs the bench: npm run bench -- --quick
//
// The bench starts a process per subject for many minutes, so it runs from a copy: a build that is made meanwhile must
// not change, or tidy away, what is being measured. The copy counts as a draft of this process, which no build removes
// while the process lives.
import { spawn } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BuildError, build } from './build.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const copy = join(root, '.build', `draft-${process.pid}-bench`)

function runBench() {
  const main = join(copy, 'bench', 'dist', 'main.js')
  const bench = spawn(process.execPath, [main, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
  // The bench is asked to stop too and cleans up; this process waits for it.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => bench.kill(signal))
  return new Promise((resolve) => bench.once('exit', (code) => resolve(code ?? 1)))
}

try {
  cpSync(build(), copy, { recursive: true, verbatimSymlinks: true })
  process.exitCode = await runBench()
} catch (error) {
  if (!(error instanceof BuildError)) throw error
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}
