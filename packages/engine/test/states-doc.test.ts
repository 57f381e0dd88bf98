import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { RUN_STATE } from '../src/job/states.ts'
import { TRANSITIONS, type Transition } from '../src/job/transitions.ts'

interface DescribeMoves {
  writeMoves(page: string, transitions: readonly Transition[]): string
}

const script = new URL('../../../scripts/describe-moves.mjs', import.meta.url)
const page = readFileSync(new URL('../../../docs/internals/states.md', import.meta.url), 'utf8')

test('the page on states has the moves that job/transitions.ts lists; if not, `npm run docs` writes it anew', async () => {
  const { writeMoves } = (await import(script.href)) as DescribeMoves
  expect(page).toBe(writeMoves(page, TRANSITIONS))
})

test('the page on states explains every state', () => {
  const explained = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, state]) => state)
  expect(new Set(explained)).toEqual(new Set(Object.keys(RUN_STATE)))
})
