import { readFile } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../src/runtime/logger.ts'
import { migrate } from '../src/store/migrator.ts'
import { createDatabase } from './database.ts'

interface DescribeSchema {
  describeSchema(client: unknown, schema: string): Promise<string>
}

const script = new URL('../../../scripts/describe-schema.mjs', import.meta.url)

test('schema.sql shows what the migrations make; if not, `npm run schema` writes it anew', async () => {
  const database = await createDatabase({ migrations: [] })
  onTestFinished(() => database.drop())
  const client = await database.pool.connect()
  onTestFinished(() => client.release())
  await migrate(client, { schema: database.schema, logger: silentLogger })
  const { describeSchema } = (await import(script.href)) as DescribeSchema
  const written = await readFile(new URL('../schema.sql', import.meta.url), 'utf8')
  expect(written).toBe(await describeSchema(client, database.schema))
})
