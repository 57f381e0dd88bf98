import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const ROOT = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))))

/** A checkout with two tiny packages, built by the real script and compiler. */
function setup() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'belfry-build-test-')))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  for (const path of ['scripts/build.mjs', 'tsconfig.json', 'package-lock.json'])
    cpSync(join(ROOT, path), join(root, path))
  mkdirSync(join(root, 'node_modules', '@belfry'), { recursive: true })
  for (const name of ['typescript', '@typescript', '@types', 'undici-types']) {
    symlinkSync(join(ROOT, 'node_modules', name), join(root, 'node_modules', name))
  }
  for (const name of ['engine', 'cli']) {
    const exports = {
      '.': { 'belfry:source': './src/index.ts', types: './dist/index.d.ts', default: './dist/index.js' },
    }
    write(`packages/${name}/package.json`, JSON.stringify({ name: `@belfry/${name}`, type: 'module', exports }))
    symlinkSync(`../../packages/${name}`, join(root, 'node_modules', '@belfry', name))
  }
  write('packages/engine/migrations/0001_x.sql', 'select 1;')
  write('packages/engine/src/answer.ts', 'export const answer: number = 41')
  write('packages/engine/src/index.ts', "export { answer } from './answer.ts'")
  write('packages/cli/src/index.ts', "import { answer } from '@belfry/engine'\nconsole.log(answer)")

  const node = async (...words: string[]) => {
    const child = spawn(process.execPath, words, { cwd: root })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text))
    const [code] = await once(child, 'close')
    return { code: code as number, said }
  }
  const link = (name: string) => readlinkSync(join(root, 'packages', name, 'dist'))
  return {
    root,
    write,
    node,
    link,
    build: () => node('scripts/build.mjs'),
    builds: () => readdirSync(join(root, '.build')),
  }
}

test('a build runs, has its declarations and its migrations, and follows the sources', async () => {
  const t = setup()
  expect(await t.build()).toMatchObject({ code: 0 })
  expect(await t.node('packages/cli/dist/index.js')).toEqual({ code: 0, said: '41\n' })
  expect(readdirSync(join(t.root, 'packages/engine/dist')).sort()).toContain('index.d.ts')
  expect(readdirSync(join(realpathSync(join(t.root, 'packages/engine/dist')), '..', 'migrations'))).toEqual([
    '0001_x.sql',
  ])

  t.write('packages/engine/src/answer.ts', 'export const answer: number = 42')
  await t.build()
  expect(await t.node('packages/cli/dist/index.js')).toEqual({ code: 0, said: '42\n' })
})

test('several builds at once, beside the draft of a killed one, end in one build', async () => {
  const t = setup()
  mkdirSync(join(t.root, '.build', 'draft-999999999-abcd', 'cli'), { recursive: true })
  const results = await Promise.all([t.build(), t.build(), t.build()])
  expect(results.map(({ code }) => code)).toEqual([0, 0, 0])
  expect(t.builds()).toHaveLength(1)
  expect(t.link('cli')).toBe(join('..', '..', '.build', t.builds()[0] ?? '', 'cli', 'dist'))
})

test('sources that do not compile are told with their place, and the last build stays', async () => {
  const t = setup()
  await t.build()
  const before = t.link('cli')
  t.write('packages/cli/src/index.ts', 'export const count: number = "many"')
  expect(await t.build()).toEqual({
    code: 1,
    said: expect.stringMatching(/packages\/cli\/src\/index\.ts\(1,14\): error TS2322/),
  })
  expect(t.link('cli')).toBe(before)
})
