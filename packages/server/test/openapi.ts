import { createApp } from '../src/create-app.ts'

/** As much of JSON Schema as an OpenAPI 3.1 document of ours uses. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  patternProperties?: Record<string, Schema>
  minProperties?: number
  maxProperties?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
  minimum?: number
  maximum?: number
  examples?: unknown[]
  example?: unknown
  default?: unknown
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  schema: Schema
  example?: unknown
}

interface MediaType {
  schema?: Schema
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

interface PathItem {
  operationId?: string
  tags?: string[]
  security?: unknown[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, MediaType> }
  'x-belfry-scope'?: string | string[] | null
}

export interface OpenApi {
  openapi: string
  paths: Record<string, Record<string, PathItem>>
  components?: { schemas?: Record<string, Schema> }
}

export interface Operation {
  /** `GET /v1/jobs/{id}` */
  title: string
  method: string
  path: string
  tag: string
  /** A key needs one of them. Null: it needs no key. */
  scopes: string[] | null
  parameters: Parameter[]
  /** The content type that is sent, and what must be in it; null if there is no body. */
  body: { contentType: string; schema: Schema } | null
}

export class Document {
  readonly operations: Operation[]
  readonly #document: OpenApi

  constructor(document: OpenApi) {
    this.#document = document
    this.operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => operationOf(path, method, operation)),
    )
  }

  /** What the server says about itself; it needs no database for that. */
  static async load(): Promise<Document> {
    const app = await createApp({ service: () => null, adminKey: null })
    const { body } = await app.inject('/openapi.json')
    await app.close()
    return new Document(JSON.parse(body) as OpenApi)
  }

  /** What a reference stands for. */
  resolve(schema: Schema): Schema {
    if (schema.$ref === undefined) return schema
    const name = schema.$ref.replace('#/components/schemas/', '')
    const found = this.#document.components?.schemas?.[name]
    if (found === undefined) throw new Error(`the document has no ${schema.$ref}`)
    const { $ref: _, ...beside } = schema
    return { ...this.resolve(found), ...beside }
  }
}

function operationOf(path: string, method: string, item: PathItem): Operation {
  const content = Object.entries(item.requestBody?.content ?? {})
  const json = content.find(([type]) => type === 'application/json') ?? content[0]
  return {
    title: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    tag: item.tags?.[0] ?? '',
    scopes: item['x-belfry-scope'] == null ? null : [item['x-belfry-scope']].flat(),
    parameters: (item.parameters ?? []).map(({ example, schema, ...rest }) => ({
      ...rest,
      schema: example === undefined ? schema : { ...schema, example },
    })),
    body: json === undefined ? null : { contentType: json[0], schema: withExamples(json[1]) },
  }
}

/** Examples of a body may stand beside its schema. */
function withExamples({ schema = {}, example, examples = {} }: MediaType): Schema {
  const values = [...(example === undefined ? [] : [example]), ...Object.values(examples).map(({ value }) => value)]
  return values.length === 0 ? schema : { ...schema, examples: values }
}
