import { existsSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** A build of Belfry with the workloads of this bench in it. */
export interface Program {
  name: 'this' | 'other'
  /** The file of the process that performs one subject. */
  child: string
}

const OWN_BENCH = fileURLToPath(new URL('..', import.meta.url))

export const THIS: Program = { name: 'this', child: fileURLToPath(new URL('./child.js', import.meta.url)) }

export interface OtherProgram extends Program {
  remove(): Promise<void>
}

/**
 * Builds another checkout and puts this bench beside its packages. What the workloads import (the engine, the server, the
 * client and pg) is then found in that checkout, and an older program is measured by the workloads of today.
 */
export async function makeOther(checkout: string): Promise<OtherProgram> {
  const script = join(checkout, 'scripts', 'build.mjs')
  if (!existsSync(script)) throw new Error('there is no checkout of Belfry')
  const { build } = (await import(pathToFileURL(script).href)) as { build(): string }
  const built = build()
  // That checkout's builds leave the draft of a process that lives alone.
  const copy = join(checkout, '.build', `draft-${process.pid}-against`)
  await cp(built, copy, { recursive: true, verbatimSymlinks: true })
  await rm(join(copy, 'bench'), { recursive: true, force: true })
  await cp(OWN_BENCH, join(copy, 'bench'), { recursive: true, verbatimSymlinks: true })
  return {
    name: 'other',
    child: join(copy, 'bench', 'dist', 'child.js'),
    remove: () => rm(copy, { recursive: true, force: true }),
  }
}
