// Builds what has changed, then runs the bench: npm run bench -- --quick
//
// The bench starts a process per subject for many minutes, so it runs from a copy: a build that is made meanwhile must
// not change, or tidy away, what is being measured. The copy counts as a draft of this process, which no build removes
// while the process lives.
//
// It runs on a newer Node.js than Belfry asks for, all subjects on the same one, because the newest peers need it.
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BuildError, build } from './build.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const copy = join(root, '.build', `draft-${process.pid}-bench`)
/** No workspace: npm would put a Node.js that is installed among those before the reader's own in every script. */
const peers = join(root, 'packages', 'bench', 'peers')

/** The Node.js that is installed with the peers, or the one at hand where there is none. */
function findNode() {
  const installed = ['node', 'node-bin'].map((name) => `${name}-${process.platform}-${process.arch}/bin/node`)
  for (const path of installed) {
    try {
      return createRequire(join(peers, 'package.json')).resolve(path)
    } catch {}
  }
  console.error(`There is no newer Node.js in ${peers}: the bench runs on ${process.version}, without some peers.`)
  return process.execPath
}

function installPeers() {
  const [asked, installed] = ['package-lock.json', 'node_modules/.package-lock.json'].map((name) => join(peers, name))
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(asked).mtimeMs) return
  console.log(`installing the newest peers and the Node.js that they need in ${peers}`)
  spawnSync('npm', ['ci', '--prefix', peers, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: peers,
    shell: process.platform === 'win32',
    stdio: 'inherit',
  })
}

function runBench() {
  const main = join(copy, 'bench', 'dist', 'main.js')
  const bench = spawn(findNode(), [main, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
  // The bench is asked to stop too and cleans up; this process waits for it.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => bench.kill(signal))
  return new Promise((resolve) => bench.once('exit', (code) => resolve(code ?? 1)))
}

try {
  installPeers()
  cpSync(build(), copy, { recursive: true, verbatimSymlinks: true })
  process.exitCode = await runBench()
} catch (error) {
  if (!(error instanceof BuildError)) throw error
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}
