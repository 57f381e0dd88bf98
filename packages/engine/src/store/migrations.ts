import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { invariant } from '../errors.ts'

/** One step of the schema, forward only: plain SQL with unqualified names. */
export interface Migration {
  number: number
  name: string
  sql: string
  /** A program that does not know this step cannot work with a schema that has it. */
  breaking: boolean
  checksum: string
}

/** Beside `src` in the sources and beside `dist` in a build. */
const DIRECTORY = new URL('../../migrations/', import.meta.url)

export async function loadMigrations(): Promise<Migration[]> {
  const names = (await readdir(DIRECTORY)).filter((name) => name.endsWith('.sql')).sort()
  const migrations = await Promise.all(
    names.map(async (name) => parseMigration(name, await readFile(new URL(name, DIRECTORY), 'utf8'))),
  )
  for (const [index, { number, name }] of migrations.entries()) {
    invariant(number === index + 1, `migration ${name} has the number ${number}, the next one is ${index + 1}`)
  }
  return migrations
}

/** Reads `0007_add_tags.sql`; a first line `-- breaking` marks a step that older programs cannot live with. */
export function parseMigration(fileName: string, text: string): Migration {
  const parts = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(fileName)
  invariant(parts, `${fileName} is not named like 0001_some_words.sql`)
  // A checkout with other line ends holds the same migration.
  const sql = text.replaceAll('\r\n', '\n')
  return {
    number: Number(parts[1]),
    name: parts[2] ?? '',
    sql,
    breaking: /^-- breaking\s*(\n|$)/.test(sql),
    checksum: createHash('sha256').update(sql).digest('hex'),
  }
}

export function migrationLabel({ number, name }: Pick<Migration, 'number' | 'name'>): string {
  return `${String(number).padStart(4, '0')}_${name}`
}
