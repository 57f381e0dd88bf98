import { readFile } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createDatabase } from './database.ts'

interface DescribeSchema {
  describeSchema(client: unknown, schema: string): Promise<string>
}

const script = new URL('../../../scripts/describe-schema.mjs', import.meta.url)

test('schema.sql shows what the migrations make; if not, `npm run schema` writes it anew', async () => {
  const database = await createDatabase({ fresh: true })
  onTestFinished(() => database.drop())
  const { describeSchema } = (await import(script.href)) as DescribeSchema
  const written = await readFile(new URL('../schema.sql', import.meta.url), 'utf8')
  expect(written).toBe(await describeSchema(database.pool, database.schema))
})
