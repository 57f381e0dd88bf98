import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

/** Everything that a file brings along, itself included, and what of it is not a file. */
async function importsOf(entry: URL): Promise<{ files: Set<string>; foreign: string[] }> {
  const files = new Set<string>()
  const foreign: string[] = []
  const visit = async (file: URL): Promise<void> => {
    if (files.has(file.href)) return
    files.add(file.href)
    const source = await readFile(file, 'utf8')
    for (const [, specifier = ''] of source.matchAll(/(?<!')(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g)) {
      if (specifier.startsWith('.')) await visit(new URL(specifier, file))
      else foreign.push(specifier)
    }
  }
  await visit(entry)
  return { files, foreign }
}

const entry = (path: string) => new URL(`../src/${path}`, import.meta.url)

test('the client brings nothing along that a browser does not have', async () => {
  const { files, foreign } = await importsOf(entry('index.ts'))
  expect(foreign).toEqual([])
  expect(files.size).toBeGreaterThan(20)
  expect([...files].filter((file) => /\/(worker|receiver)\//.test(file))).toEqual([])
})

test.each(['worker/index.ts', 'receiver/index.ts'])('%s needs nothing but Node.js', async (path) => {
  const { foreign } = await importsOf(entry(path))
  expect(foreign.filter((specifier) => !specifier.startsWith('node:'))).toEqual([])
})
