import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { allStatements, renderFor } from '../../src/store/statement.ts'
import { startKit } from './kit.ts'

const SOURCES = fileURLToPath(new URL('../../src', import.meta.url))

test('every statement of the engine can be prepared on the real schema', async () => {
  const { kit, pool } = await startKit()
  for (const file of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })) {
    if (file.endsWith('.sql.ts')) await import(`${SOURCES}/${file}`)
  }
  const refused: string[] = []
  for (const statement of allStatements()) {
    await pool
      .query(`prepare ${statement.name} as ${renderFor(kit.schema, statement)}`)
      .catch((error: Error) => refused.push(`${statement.name}: ${error.message}`))
  }
  expect(allStatements().length).toBeGreaterThan(50)
  expect(refused).toEqual([])
})
