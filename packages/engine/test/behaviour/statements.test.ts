import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, inject, test } from 'vitest'
import { allStatements, renderFor } from '../../src/store/statement.ts'
import { startKit } from './kit.ts'

const SOURCES = fileURLToPath(new URL('../../src', import.meta.url))

async function setup() {
  const { kit, pool } = await startKit()
  for (const file of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })) {
    if (file.endsWith('.sql.ts')) await import(`${SOURCES}/${file}`)
  }
  const statements = allStatements().map((one) => ({ name: one.name, text: renderFor(kit.schema, one) }))
  expect(statements.length).toBeGreaterThan(50)
  return { pool, statements }
}

test('every statement of the engine can be prepared on the real schema', async () => {
  const { pool, statements } = await setup()
  const refused: string[] = []
  for (const { name, text } of statements) {
    await pool.query(`prepare ${name} as ${text}`).catch((error: Error) => refused.push(`${name}: ${error.message}`))
  }
  expect(refused).toEqual([])
})

interface Plan {
  'Node Type': string
  Operation?: string
  'Subplan Name'?: string
  'CTE Name'?: string
  'Relation Name'?: string
  'Index Cond'?: string
  Filter?: string
  Plans?: Plan[]
}

/** What tells the partition is a column of another row, not a parameter of the statement. */
const BY_ROW = {
  specs: /\bjob_id = \w+\./,
  others: /\b(?:finished_at|decided_at|logged_at|changed_at) (?:[<>]=?|=) \(?\w+\./,
}

const isLock = (plan: Plan): boolean =>
  plan['Node Type'] === 'LockRows' || (plan['Node Type'] === 'ModifyTable' && plan.Operation !== 'Insert')
const some = (plan: Plan, is: (plan: Plan) => boolean): boolean =>
  is(plan) || (plan.Plans ?? []).some((below) => some(below, is))
const choosesByRow = (plan: Plan): boolean =>
  /Append$/.test(plan['Node Type']) &&
  (plan.Plans ?? []).some((part) => {
    const [, table] = /^(\w+)_\d{8}$/.exec(part['Relation Name'] ?? '') ?? []
    const rule = table === 'specs' ? BY_ROW.specs : BY_ROW.others
    return table !== undefined && rule.test(`${part['Index Cond']} ${part.Filter}`)
  })
/** What hangs below a lock or a subplan is set up anew when a row that changed is looked at again. */
const choosesAnew = (plan: Plan): boolean =>
  some(plan, (below) => (below['Subplan Name'] !== undefined || isLock(below)) && some(below, choosesByRow))

/** Its branches follow each other: first those that look, then those that lock. */
const IN_ORDER = ['lock_jobs_to_wake']

/** Before 16 PostgreSQL does not show plans that are made without the values of parameters. */
test.skipIf(inject('serverMajor') < 16)(
  'no statement chooses partitions by a row behind a lock: PostgreSQL 18 may die of that',
  async () => {
    const { pool, statements } = await setup()
    const found: string[] = []
    for (const { name, text } of statements) {
      const { rows } = await pool.query(`explain (generic_plan, format json) ${text}`)
      const plan = rows[0]['QUERY PLAN'][0].Plan as Plan
      if (some(plan, isLock) && choosesAnew(plan)) found.push(name)
    }
    expect(found).toEqual(IN_ORDER)
  },
)
