import type { OpenApiDocument, Schema } from './openapi-document.ts'

/**
 * Schemas with a title become components, and every place where one stands becomes a reference to it. Routes can then hold
 * whole schemas, which is what checks and writes them fastest, and the document still says each thing once.
 */
export function liftNamed(document: OpenApiDocument): OpenApiDocument {
  const schemas: Record<string, Schema> = { ...document.components.schemas }
  const lifted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(lifted)
    if (typeof value !== 'object' || value === null) return value
    const copy = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, lifted(member)]))
    if (!isNamed(copy)) return copy
    const { title } = copy
    const reference = { $ref: `#/components/schemas/${title}` }
    const isNullable = Array.isArray(copy.type) && copy.type.includes('null')
    schemas[title] ??= isNullable ? withoutNull(copy) : copy
    return isNullable ? { anyOf: [reference, { type: 'null' }] } : reference
  }
  const paths = lifted(document.paths) as OpenApiDocument['paths']
  const responses = lifted(document.components.responses) as OpenApiDocument['components']['responses']
  return { ...document, paths, components: { ...document.components, schemas, ...(responses ? { responses } : {}) } }
}

/** That it may be missing belongs to the place, not to the thing. */
function withoutNull(schema: Schema): Schema {
  const types = ([schema.type] as unknown[]).flat().filter((type) => type !== 'null')
  return { ...schema, type: types.length === 1 ? types[0] : types } as Schema
}

/** A field may be called title, too; then it is a schema, not a text. */
const isNamed = (value: Record<string, unknown>): value is Schema & { title: string } & Record<string, unknown> =>
  typeof value.title === 'string' && /^[A-Z][A-Za-z]+$/.test(value.title) && ('type' in value || 'anyOf' in value)
