import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const TIDY = fileURLToPath(new URL('../../../scripts/tidy.mjs', import.meta.url))

/** What the check says about a tree that has just these files. */
function tidy(files: Record<string, string>): { passed: boolean; offences: string[] } {
  const root = mkdtempSync(join(tmpdir(), 'belfry-tidy-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  for (const [path, source] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), source)
  }
  const { status, stderr } = spawnSync(process.execPath, [TIDY, root], { encoding: 'utf8' })
  return { passed: status === 0, offences: stderr.split('\n').filter((line) => /:\d+: /.test(line)) }
}

const ENGINE = 'packages/engine/src'

const REFUSED: [name: string, path: string, source: string, offence: RegExp][] = [
  [
    'a place that imports a move',
    'timers/a.ts',
    "import { b } from '../promotion/b.ts'",
    /:1: timers may not import promotion/,
  ],
  ['a place that imports another place', 'ready/a.ts', "\nexport * from '../leases/b.ts'", /:2: .*side by side/],
  [
    'a type taken from above',
    'store/a.ts',
    "import type { B } from '../timers/b.ts'",
    /:1: store may not import timers/,
  ],
  [
    'an import from above made at run time',
    'job/a.ts',
    "await import('../store/b.ts')",
    /:1: job may not import store/,
  ],
  ['a folder that imports the top', 'attempts/a.ts', "import { E } from '../engine.ts'", /engine\.ts stands above/],
  [
    'the test kit in the product',
    'engine.ts',
    "import { t } from './testing/index.ts'",
    /only tests import the test kit/,
  ],
  ['a folder nobody has placed', 'gadgets/a.ts', "import { b } from '../job/b.ts'", /unknown folder gadgets/],
  ['a folder without a meaning', 'job/utils/a.ts', 'export const a = 1', /folder called utils/],
  ['another package by its path', 'job/a.ts', "import { b } from '../../../server/src/b.ts'", /import @belfry\/server/],
  ['another package by its sources', 'job/a.ts', "import { b } from '@belfry/server/src/b.ts'", /by its name/],
  [
    "the system's time",
    'job/a.ts',
    'const a = 1\nexport const b = () => a + Date.now()',
    /:2: Date\.now outside runtime/,
  ],
  ['the current date', 'job/a.ts', 'export const a = new Date()', /new Date\(\) outside runtime/],
  ['chance', 'job/a.ts', `export const a = \`\${Math.random()}\``, /Math\.random outside runtime/],
  ['a timer', 'job/a.ts', 'setTimeout(() => {}, 5)', /setTimeout outside runtime/],
  ['the environment', 'store/a.ts', 'export const a = process.env.HOME', /process\.env outside cli/],
  ['a default export', 'job/a.ts', 'export default 5', /exports a default/],
  ['a file without an end', 'job/a.ts', 'export {}\n'.repeat(401), /:401: has 401 lines/],
  ['a statement among other code', 'ready/a.ts', "const A = statement('a', 'select 1')", /outside a \*\.sql\.ts file/],
  ['a row read by its tenth place', 'ready/a.ts', 'const a = (b?: unknown[]) => b?.[10]', /:1: reads b\?\.\[10\]/],
  [
    'a tuple that nobody can count',
    'ready/a.ts',
    'type Row = [\n  ...[a: string, b: number, c: number, d: number, e: Map<string>],\n  ...[f: string, g: number, h: number, i: 1, j: 1, k: 1],\n]',
    /:1: counts 11 places/,
  ],
  [
    'a tuple in the type of an answer',
    'ready/a.ts',
    'await tx.query<[A, A, A, A, A, A, A, A, A, A, A]>(READ)',
    /:1: counts 11 places/,
  ],
  [
    'a row taken apart into more than ten names',
    'ready/a.ts',
    '\nconst [a, b, c, d, e, f, g, h, , , k] = row',
    /:2: counts 11 places/,
  ],
  [
    'a parameter that does the same',
    'ready/a.ts',
    'rows.map(([a, b, c, d, e, f, g, h, i, j, k], index) => a)',
    /:1: counts 11 places/,
  ],
  ['a test that sleeps', 'job/a.test.ts', 'await sleep(50)', /sleeps/],
  ['a test that waits for a timer', 'job/a.test.ts', 'await new Promise((go) => setTimeout(go, 50))', /sleeps/],
  ['a test that leaves others out', 'job/a.test.ts', "test.only('a', () => {})", /test\.only leaves tests out/],
  [
    'a test that is left out',
    'job/a.test.ts',
    "test.each([1]).skip('a', () => {})\ndescribe.skip('b')",
    /:2: describe\.skip/,
  ],
]

test.each(REFUSED)('%s is refused, with its file and line', (_name, path, source, offence) => {
  const { passed, offences } = tidy({ [`${ENGINE}/${path}`]: source })
  expect(passed).toBe(false)
  expect(offences).toEqual([expect.stringMatching(offence)])
  expect(offences[0]).toMatch(`${ENGINE}/${path}:`)
})

test('files that import each other in a ring are refused once, with the whole ring', () => {
  const { offences } = tidy({
    [`${ENGINE}/job/a.ts`]: "import { b } from './b.ts'",
    [`${ENGINE}/job/b.ts`]: "import type { C } from './c.ts'",
    [`${ENGINE}/job/c.ts`]: "import { a } from './a.ts'",
  })
  expect(offences).toEqual([expect.stringContaining('a.ts → b.ts → c.ts → a.ts')])
})

test('two statements of one name are refused where the second stands', () => {
  const { offences } = tidy({
    [`${ENGINE}/ready/a.sql.ts`]: "const A = statement('claim', 'select 1')",
    [`${ENGINE}/ready/b.sql.ts`]: "const B = statement(\n  'claim',\n  'select 2')",
  })
  expect(offences).toEqual([expect.stringMatching(/b\.sql\.ts:1: the statement claim .* a\.sql\.ts:1/)])
})

test('what only looks like an offence passes', () => {
  const { passed, offences } = tidy({
    [`${ENGINE}/engine.ts`]: "import { a } from './attempts/a.ts'\nimport { options } from './options.ts'\n",
    [`${ENGINE}/options.ts`]: "import { BelfryError } from './errors.ts'\n",
    [`${ENGINE}/attempts/a.ts`]: "import { lease } from '../leases/lease.ts'\nimport { b } from './b.ts'\n",
    [`${ENGINE}/job/a.ts`]: [
      '// Date.now() and setTimeout are for runtime/',
      '/* export default, process.env */',
      `const text = 'import x from "../store/database.ts"' + \`Math.random() \${'a'} setTimeout\``,
      'const pattern = /process.env|Date.now/',
      'export const date = (ms: number) => new Date(ms)',
      "const halves = 4 / 2 / 1 // 'an apostrophe's end",
      'type Ten = [a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9, j: 10]',
      'const [a, b, c, d, e, f, g, h, i, { j, k, l }] = ten',
      'send([a, b ? c : d, e, f, g, h, i, j, k, l, m, n], (x) => x)',
      'const values = yes ? [a, b, c, d, e, f, g, h, i, j, k, l] : [ten[9], `$1[10]`]',
    ].join('\n'),
    [`${ENGINE}/job/a.test.ts`]: "test.skipIf(isRoot)('a', () => {})\nimport { t } from '../testing/index.ts'\n",
    [`${ENGINE}/runtime/clock.ts`]: 'export const now = () => Date.now()\n',
    'packages/server/test/api.ts': "import { createDatabase } from '../../engine/test/database.ts'\n",
    'packages/cli/src/main.ts': 'export const environment = process.env\n',
    'packages/bench/src/main.ts': 'export const now = () => Date.now()\n',
    'packages/site/site.config.ts': 'export default {}\n',
  })
  expect(offences).toEqual([])
  expect(passed).toBe(true)
})
