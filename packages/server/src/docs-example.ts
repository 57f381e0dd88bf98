import type { OpenApiDocument, Operation, Schema } from './openapi-document.ts'

const COMPONENT = '#/components/schemas/'

/** A line that works when pasted, once the two variables are set. */
export function curlOf(method: string, path: string, operation: Operation, document: OpenApiDocument): string {
  const isKeyed = operation['x-belfry-scope'] !== null
  const parts = [`curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} "$BELFRY_URL${filled(path, operation)}"`]
  if (isKeyed) parts.push('-H "Authorization: Bearer $BELFRY_API_KEY"')
  const [type, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  if (type !== undefined && content !== undefined && operation.requestBody?.required !== false) {
    const body =
      content.example ?? Object.values(content.examples ?? {})[0]?.value ?? sample(content.schema ?? {}, document)
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    parts.push(`-H "Content-Type: ${type}"`, `-d '${text.replaceAll("'", "'\\''")}'`)
  }
  return parts.join(' \\\n  ')
}

function filled(path: string, { parameters = [] }: Operation): string {
  return path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    const parameter = parameters.find((one) => one.in === 'path' && one.name === name)
    const example = parameter?.example ?? parameter?.schema.examples?.[0]
    return example === undefined ? name.toUpperCase() : encodeURIComponent(String(example))
  })
}

/** The smallest value that would do: examples where there are any, and only what must be there. */
function sample(schema: Schema, document: OpenApiDocument): unknown {
  const { $ref, examples, const: constant, enum: choices, anyOf, items, properties = {}, required = [] } = schema
  if ($ref !== undefined) return sample(document.components.schemas?.[$ref.slice(COMPONENT.length)] ?? {}, document)
  const given = examples?.[0] ?? schema.default ?? constant ?? choices?.[0]
  if (given !== undefined) return given
  if (anyOf?.[0]) return sample(anyOf[0], document)
  switch ([schema.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(
        Object.entries(properties)
          .filter(([name]) => required.includes(name))
          .map(([name, property]) => [name, sample(property, document)]),
      )
    case 'array':
      return items ? [sample(items, document)] : []
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return true
    default:
      return 'text'
  }
}
