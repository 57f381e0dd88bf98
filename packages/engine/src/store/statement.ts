import { type ArrayTypes, arrayTypesOf } from './arrays.ts'

/**
 * A statement is static text with a name that is also its prepared statement, its metric and its log field.
 * Tables are written with the schema `belfry.`; a store on another schema renames it, so one text serves the engine's own
 * connections, a caller's transaction and a test's schema, whatever their search path says.
 */
export interface Statement {
  readonly name: string
  readonly text: string
  /** What its array parameters hold: it casts every one. */
  readonly arrays: ArrayTypes
  /** It locks rows and does not pass over those that another transaction holds. */
  readonly waitsForRows: boolean
}

/** Where nothing is true there is no row to wait for. */
const LOCKS_ROWS = /(?<!\bwhere false )\bfor (?:no key update|update|key share|share)\b(?! (?:of \w+ )?skip locked)/

const all = new Map<string, Statement>()

export function statement(name: string, text: string): Statement {
  if (all.has(name)) throw new Error(`two statements are called ${name}`)
  const made = { name, text: text.trim(), arrays: arrayTypesOf(text), waitsForRows: LOCKS_ROWS.test(text) }
  all.set(name, made)
  return made
}

/** Every statement of the engine: a test prepares them all on the real schema. */
export const allStatements = (): readonly Statement[] => [...all.values()]

const rendered = new Map<string, string>()

export function renderFor(schema: string, { name, text }: Pick<Statement, 'name' | 'text'>): string {
  if (schema === 'belfry') return text
  const key = `${schema}.${name}`
  const known = rendered.get(key)
  if (known !== undefined) return known
  const made = text.replaceAll('belfry.', `"${schema}".`)
  rendered.set(key, made)
  return made
}
