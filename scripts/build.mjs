// Builds every package into `.build/<hash of the sources>/<package>/dist` and points `packages/<package>/dist` there.
//
// A build is made in a draft and appears by one rename; it is complete in itself (its packages find each other inside
// it), so a process that runs from it never sees a mixture, whatever is built beside it. Any number of builds may run
// at once, and any of them may be killed: a draft is nobody's, and the links are swapped by rename.
import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const builds = join(root, '.build')

/** The packages that have sources, by folder name. */
function packageNames() {
  return readdirSync(join(root, 'packages')).filter((name) => existsSync(join(root, 'packages', name, 'src')))
}

/** Everything a build depends on: sources, migrations, manifests, compiler and its settings, and this script. */
export function sourceHash() {
  const files = ['tsconfig.json', 'package-lock.json', 'scripts/build.mjs']
  for (const name of packageNames()) {
    files.push(`packages/${name}/package.json`)
    for (const folder of ['src', 'migrations']) files.push(...filesUnder(`packages/${name}/${folder}`))
  }
  const hash = createHash('sha256')
  for (const file of files.filter((one) => !one.endsWith('.test.ts')).sort()) {
    const path = join(root, file)
    if (existsSync(path)) hash.update(`${file}\n`).update(readFileSync(path)).update('\n')
  }
  return hash.digest('hex').slice(0, 16)
}

function filesUnder(folder) {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
}

export function buildDirectory(hash) {
  return join(builds, hash)
}

/** Whether the build of these sources is there and every package points to it. */
export function isFresh(hash) {
  return existsSync(buildDirectory(hash)) && packageNames().every((name) => linkTarget(name) === linkText(name, hash))
}

/** Builds if needed; answers the directory of the build. Throws `BuildError` with what the compiler said. */
export function build() {
  const hash = sourceHash()
  if (isFresh(hash)) return buildDirectory(hash)
  const previous = currentHash()
  try {
    if (!existsSync(buildDirectory(hash))) make(hash)
    for (const name of packageNames()) point(name, hash)
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS', 'ENOSPC'].includes(error.code)) throw error
    throw new BuildError(
      `Belfry has to be built, and ${root} cannot be written (${error.code}): run \`npm run build\` as its owner.`,
    )
  }
  tidy([hash, previous])
  return buildDirectory(hash)
}

export class BuildError extends Error {}

function make(hash) {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  if (!existsSync(compiler)) {
    throw new BuildError(
      'Belfry is not built and TypeScript is not installed: run `npm install` (with dev dependencies).',
    )
  }
  const draft = join(builds, `draft-${process.pid}-${randomBytes(4).toString('hex')}`)
  mkdirSync(draft, { recursive: true })
  try {
    compile(compiler, draft)
    for (const name of packageNames()) complete(name, draft)
    rmSync(join(draft, 'tsconfig.json'))
    publish(draft, buildDirectory(hash))
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

function compile(compiler, draft) {
  const settings = {
    extends: '../../tsconfig.json',
    compilerOptions: { noEmit: false, rootDir: '../../packages', outDir: '.' },
    include: packageNames().map((name) => `../../packages/${name}/src`),
    exclude: ['../../packages/*/src/**/*.test.ts'],
  }
  writeFileSync(join(draft, 'tsconfig.json'), JSON.stringify(settings))
  const run = spawnSync(process.execPath, [compiler, '-p', join(draft, 'tsconfig.json'), '--pretty', 'false'], {
    cwd: root,
    encoding: 'utf8',
  })
  if (run.error) throw new BuildError(`The compiler cannot be started: ${run.error.message}`)
  if (run.status !== 0) throw new BuildError(`Belfry does not compile:\n${run.stdout}${run.stderr}`.trimEnd())
}

/** Gives a compiled package what it needs to stand on its own: manifest, migrations, and its neighbours. */
function complete(name, draft) {
  const source = join(root, 'packages', name)
  const target = join(draft, name)
  mkdirSync(target, { recursive: true })
  // A package whose sources hold no code yet compiles to nothing.
  if (existsSync(join(target, 'src'))) renameSync(join(target, 'src'), join(target, 'dist'))
  else mkdirSync(join(target, 'dist'))
  // What is plain JavaScript already (a thread that also runs from the sources) stands in a build as it is.
  for (const file of filesUnder(`packages/${name}/src`).filter((one) => one.endsWith('.mjs')))
    cpSync(join(root, file), join(target, 'dist', relative(`packages/${name}/src`, file)))
  cpSync(join(source, 'package.json'), join(target, 'package.json'))
  if (existsSync(join(source, 'migrations')))
    cpSync(join(source, 'migrations'), join(target, 'migrations'), { recursive: true })
  const own = join(source, 'node_modules')
  if (existsSync(own)) symlinkSync(relative(target, own), join(target, 'node_modules'))

  const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'))
  const link = join(draft, 'node_modules', ...manifest.name.split('/'))
  mkdirSync(dirname(link), { recursive: true })
  symlinkSync(relative(dirname(link), target), link, 'junction')
}

function publish(draft, target) {
  try {
    renameSync(draft, target)
  } catch (error) {
    // Another build of the same sources was quicker; both are the same.
    if (!existsSync(target)) throw error
  }
}

function linkText(name, hash) {
  return join('..', '..', '.build', hash, name, 'dist')
}

function linkTarget(name) {
  try {
    return readlinkSync(join(root, 'packages', name, 'dist'))
  } catch {
    return null
  }
}

function currentHash() {
  const target = linkTarget('cli')
  return target ? basename(dirname(dirname(target))) : null
}

function point(name, hash) {
  const link = join(root, 'packages', name, 'dist')
  if (linkTarget(name) === linkText(name, hash)) return
  if (existsSync(link) && !lstatSync(link).isSymbolicLink()) rmSync(link, { recursive: true })
  const draft = `${link}.${randomBytes(4).toString('hex')}.dist`
  symlinkSync(linkText(name, hash), draft, 'junction')
  renameSync(draft, link)
}

/** Removes old builds, but not those in `keep`, not a linked one, and not what another process is making now. */
function tidy(keep) {
  const linked = packageNames().map((name) => basename(dirname(dirname(linkTarget(name) ?? '//'))))
  for (const name of readdirSync(builds)) {
    const maker = /^draft-(\d+)-/.exec(name)?.[1]
    const wanted = maker ? isRunning(Number(maker)) : keep.includes(name) || linked.includes(name) || isYoung(name)
    if (!wanted) rmSync(join(builds, name), { recursive: true, force: true })
  }
}

/** A build that another process finished a moment ago and has not linked yet. */
function isYoung(name) {
  try {
    return Date.now() - statSync(join(builds, name)).ctimeMs < 60_000
  } catch {
    return false
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    const startedAt = performance.now()
    const word = isFresh(sourceHash()) ? 'fresh:' : 'built'
    const directory = build()
    console.log(`${word} ${relative(root, directory)} in ${Math.round(performance.now() - startedAt)} ms`)
  } catch (error) {
    if (!(error instanceof BuildError)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}
