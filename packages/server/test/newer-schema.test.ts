import { once } from 'node:events'
import { expect, test } from 'vitest'
import { createDatabase } from './database.ts'
import { NodeProcess } from './node-process.ts'

/** A started command, and a newer program that makes the schema another. */
async function setup(processes: string) {
  const { url, query } = await createDatabase()
  const node = new NodeProcess({ BELFRY_DATABASE_URL: url, BELFRY_PROCESSES: processes })
  await node.url
  /** What a newer program leaves that has applied a breaking migration. */
  const applyBreaking = async () => {
    const [row] = await query<{ number: number }>(
      `insert into belfry.migrations (number, name, breaking, checksum)
       select max(number) + 1, 'later', true, 'unknown' from belfry.migrations returning number`,
    )
    return row?.number ?? 0
  }
  return { node, applyBreaking }
}

test.each(['1', '2'])(
  'a start of %s processes ends with one sentence when a newer program makes the schema another',
  async (processes) => {
    const t = await setup(processes)
    const number = await t.applyBreaking()
    const [code] = await once(t.node.child, 'close')
    expect(code).toBe(1)
    expect(t.node.said).toMatch(/this node drains and ends/)
    expect(t.node.said.trimEnd().split('\n').at(-1)).toBe(
      `belfry: schema "belfry" is at migration ${number}, this Belfry knows them up to ${number - 1} and cannot work with ${number}; ` +
        'start the newer Belfry that made it, or give this one a schema or database of its own (schema_too_new)',
    )
  },
)
