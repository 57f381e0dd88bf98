// Builds what has changed, then runs the bench: npm run bench -- --quick
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

function runNode(args) {
  const { status, signal } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(signal ? 1 : (status ?? 1))
}

if (existsSync(`${root}/scripts/build.mjs`)) runNode(['scripts/build.mjs'])
runNode(['packages/bench/dist/main.js', ...process.argv.slice(2)])
