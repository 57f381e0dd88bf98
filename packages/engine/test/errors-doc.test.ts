import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ERRORS } from '../src/errors.ts'

const PAGE = new URL('../../../docs/reference/errors.md', import.meta.url)

interface Documented {
  code: string
  status: number
  title: string
  meaning: string
}

function documented(): Documented[] {
  const rows = readFileSync(PAGE, 'utf8').matchAll(/^\| `(\w+)` \| (\d{3}) \| (.+?) \| (.+?) \|$/gm)
  return [...rows].map(([, code = '', status, title = '', meaning = '']) => ({
    code,
    status: Number(status),
    title,
    meaning,
  }))
}

test('the page on errors lists the whole catalogue, in its order, with its status and title', () => {
  const catalogue = Object.entries(ERRORS).map(([code, { status, title }]) => ({ code, status, title }))
  expect(documented().map(({ code, status, title }) => ({ code, status, title }))).toEqual(catalogue)
})

test('the page says of every error what to do, and not only its title again', () => {
  for (const { code, title, meaning } of documented()) {
    expect(meaning.length, code).toBeGreaterThan(20)
    expect(meaning, code).not.toBe(title)
  }
})
