import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BelfryPlace } from './belfry-process.ts'

const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8')
const place = new BelfryPlace()
let url = ''

beforeAll(async () => {
  const node = place.start(['start'], { PORT: '0' })
  url = (await node.line(/^belfry ready on (\S+)$/))[1] ?? ''
})
afterAll(() => place.remove())

test('the lines about schedules can be pasted as they stand', async () => {
  const section = /## Two minutes with schedules\n(.*?)\n## /s.exec(readme)?.[1] ?? ''
  const blocks = [...section.matchAll(/```\n(.*?)```/gs)].map(([, lines = '']) => lines)
  const script = blocks.join('echo\n').replaceAll('http://127.0.0.1:8080', url)
  const { stdout } = await promisify(execFile)('bash', ['-ec', script], { cwd: place.directory })
  const [preview, explanation] = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
  expect(preview).toMatchObject({ understoodAs: 'at 09:00 from Monday to Friday, except on 2026-12-25, Europe/Berlin' })
  expect(preview.times).toHaveLength(5)
  expect(explanation).toMatchObject({ verdict: 'will_run', nominalAt: '2030-01-01T08:00:00.000Z' })
})
