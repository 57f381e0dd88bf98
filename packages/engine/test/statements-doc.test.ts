import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const PAGE = new URL('../../../docs/internals/statements.md', import.meta.url)
const SOURCES = fileURLToPath(new URL('../src', import.meta.url))

function statementNames(): Set<string> {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.sql.ts'))
  const sources = files.map((file) => readFileSync(`${SOURCES}/${file}`, 'utf8'))
  return new Set(
    sources.flatMap((source) => [...source.matchAll(/\bstatement\(\s*'(\w+)'/g)].map(([, name]) => name ?? '')),
  )
}

test('the page on statements describes only statements that there are', () => {
  const rows = readFileSync(PAGE, 'utf8').matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)
  const described = [...rows].flatMap(([, names = '']) => [...names.matchAll(/\w+/g)].map(([name]) => name))
  expect(described.length).toBeGreaterThan(20)
  expect(described.filter((name) => !statementNames().has(name))).toEqual([])
})
