import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { NotHere } from '../workload.ts'

/**
 * The newest peers need a newer Node.js than Belfry does, so `scripts/bench.mjs` installs them in a directory of their own,
 * with that Node.js, and starts the bench with it. What the bench uses of them is written down beside its use.
 */
const MANIFEST = join(process.cwd(), 'packages', 'bench', 'peers', 'package.json')

export async function importPeer<Module>(name: string): Promise<Module> {
  if (Number.parseInt(process.versions.node, 10) < 22)
    throw new NotHere(`it needs Node.js 22, and the bench runs on ${process.version}`)
  if (!existsSync(join(MANIFEST, '..', 'node_modules', name)))
    throw new NotHere('it is not installed: npm ci --prefix packages/bench/peers')
  return (await import(pathToFileURL(createRequire(MANIFEST).resolve(name)).href)) as Module
}
