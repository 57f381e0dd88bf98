import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as receiver from '../src/receiver/index.ts'
import { ExamplesPlace, printed, ROOT, testWith } from './examples-place.ts'

let place: ExamplesPlace
beforeAll(async () => {
  place = await ExamplesPlace.start()
})
afterAll(() => place?.remove())

const read = (page: string) => readFileSync(join(ROOT, page), 'utf8')

/** The names in the answers that a page prints. */
function namesIn(page: string): Set<string> {
  const blocks = printed(page, 'json')
  expect(blocks.length).toBeGreaterThan(3)
  return new Set(blocks.flatMap((block) => block.match(/"\w+":/g) ?? []))
}

testWith('bash', 'curl')('the guide to workers can be pasted from top to bottom, and answers as it says', async () => {
  const guide = 'docs/guides/workers.md'
  const said = await place.pasted(printed(guide).join('\n'))
  for (const name of namesIn(guide)) expect(said, name).toContain(name)
  expect(said.match(/"outcome":"\w+"/g)).toEqual(['"outcome":"ok"', '"outcome":"ok"', '"outcome":"lease_lost"'])
  const [, id = ''] = /"runId":"([^"]+)"/.exec(said) ?? []
  expect(await place.run(id)).toMatchObject({ status: 'succeeded', attempt: 1, result: { pages: 4 } })
  expect(said).toContain('page 2 is written')
  expect(said).toContain('"status":"draining"')
  const { items } = await place.call<{ items: unknown[] }>('GET', '/v1/workers')
  expect(items).toEqual([])
})

testWith('bash', 'curl')('the guide to receiving can be pasted from top to bottom', async () => {
  const lines = printed('docs/guides/receiving.md').join('\n')
  const said = await place.pasted(`${lines}\necho " known: $BELFRY_SECRET"`)
  const [, known] = / known: (whsec_\S+)/.exec(said) ?? []
  const { items } = await place.call<{ items: { secret: string }[] }>('GET', '/v1/signing-keys')
  expect(items.map(({ secret }) => secret)).toContain(known)
  expect(items).toHaveLength(2)
})

test('the guide to receiving names what there is, and nothing else', () => {
  const page = read('docs/guides/receiving.md')
  const imported = [...page.matchAll(/import \{ ([^}]+) \} from '@belfry\/client\/receiver'/g)].flatMap(
    ([, names = '']) => names.split(', '),
  )
  expect(Object.keys(receiver)).toEqual(expect.arrayContaining(imported))
  for (const name of Object.keys(receiver)) if (name !== 'Answer') expect(page, name).toContain(name)
})

test('the guide to receiving says of every refusal how it is answered', () => {
  const page = read('docs/guides/receiving.md')
  const folder = join(ROOT, 'packages/client/src/receiver')
  const sources = readdirSync(folder).filter((name) => !name.endsWith('.test.ts'))
  const codes = new Set(
    sources.flatMap((name) =>
      [...readFileSync(join(folder, name), 'utf8').matchAll(/new ReceiverError\('(\w+)'/g)].map(([, code]) => code),
    ),
  )
  expect(codes.size).toBeGreaterThan(8)
  for (const code of codes) expect(page, code).toContain(`\`${code}\``)
  for (const [, names = '', status] of page.matchAll(/^\| ((?:`\w+`(?:, )?)+) \| (\d{3}) \|/gm)) {
    for (const [, code] of names.matchAll(/`(\w+)`/g)) {
      const error = new receiver.ReceiverError(code as receiver.ReceiverErrorCode, '')
      expect([code, error.status]).toEqual([code, Number(status)])
    }
  }
})
