import { readFile } from 'node:fs/promises'
import { ERRORS } from '@belfry/engine'
import { expect, test } from 'vitest'
import { loadOpenApi, type OpenApi } from './openapi.ts'

interface DescribeWire {
  describeWire(document: OpenApi, errors: object): string
}

const script = new URL('../../../scripts/describe-wire.mjs', import.meta.url)

test('wire.ts says what the server says of itself; if not, `npm run wire` writes it anew', async () => {
  const { describeWire } = (await import(script.href)) as DescribeWire
  const written = await readFile(new URL('../src/wire.ts', import.meta.url), 'utf8')
  expect(written).toBe(describeWire(await loadOpenApi(), ERRORS))
})
