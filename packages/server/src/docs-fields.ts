import { escaped, inline, slug } from './docs-text.ts'
import type { Schema } from './openapi-document.ts'

/** Deeper than any of our shapes goes. */
const MAX_DEPTH = 6
const COMPONENT = '#/components/schemas/'

/** A list of fields: name, kind, whether it must be there, what it means; objects within are indented below it. */
export function fields({ properties = {}, required = [] }: Schema, depth = 0): string {
  const rows = Object.entries(properties).map(([name, schema]) => row(name, schema, required.includes(name), depth))
  return rows.length === 0 ? '' : `<dl>${rows.join('')}</dl>`
}

export function row(name: string, schema: Schema, isRequired: boolean, depth = 0): string {
  const must = isRequired ? ' <span class="must">required</span>' : ''
  const inner = within(schema)
  const nested = inner?.properties && depth < MAX_DEPTH ? fields(inner, depth + 1) : ''
  return `<div><dt><span class="name">${escaped(name)}</span>${must}<span class="kind">${kindOf(schema)}</span></dt><dd>${about(schema)}</dd>${nested}</div>`
}

/** The object that a field or each item of its list is. */
const within = (schema: Schema): Schema | undefined => (schema.items ? within(schema.items) : schema)

function about(schema: Schema): string {
  const { description, enum: choices, default: usual, examples } = schema
  const notes = [
    ...(choices ? [`one of ${choices.map(code).join(', ')}`] : []),
    ...(usual === undefined ? [] : [`default ${code(usual)}`]),
    ...boundsOf(schema),
    ...(examples?.length ? [`such as ${examples.map(code).join(', ')}`] : []),
  ]
  const note = notes.length === 0 ? '' : `<p class="note">${notes.join(' · ')}</p>`
  return `${description === undefined ? '' : inline(description)}${note}`
}

function boundsOf({ minimum, maximum, maxLength, minItems, maxItems }: Schema): string[] {
  const bounds: string[] = []
  if (minimum !== undefined && maximum !== undefined) bounds.push(`${minimum} to ${maximum}`)
  else if (minimum !== undefined) bounds.push(`at least ${minimum}`)
  if (maxLength !== undefined) bounds.push(`at most ${maxLength} characters`)
  if (maxItems !== undefined) bounds.push(`${minItems ?? 0} to ${maxItems} items`)
  return bounds
}

const code = (value: unknown): string =>
  `<code>${escaped(typeof value === 'string' ? value : JSON.stringify(value))}</code>`

/** What may stand there, in a word or two; a shape that has a name is a link to it. */
export function kindOf(schema: Schema): string {
  const { $ref, type, items, anyOf, format, const: constant, additionalProperties, patternProperties } = schema
  if ($ref?.startsWith(COMPONENT)) {
    const name = $ref.slice(COMPONENT.length)
    return `<a href="#shape-${slug(name)}">${escaped(name)}</a>`
  }
  if (constant !== undefined) return code(constant)
  if (anyOf) return anyOf.map(kindOf).join(' or ')
  if (items) return `list of ${kindOf(items)}`
  if (format === 'date-time') return [type].flat().includes('null') ? 'instant or null' : 'instant'
  if (patternProperties || typeof additionalProperties === 'object') return 'object of any names'
  if (type === undefined) return schema.enum ? 'text' : 'any JSON'
  return [type]
    .flat()
    .map((one) => WORDS[one] ?? one)
    .join(' or ')
}

const WORDS: Record<string, string> = {
  string: 'text',
  integer: 'whole number',
  boolean: 'true or false',
}
