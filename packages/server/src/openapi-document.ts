import type { Scope } from './service.ts'

/** As much of OpenAPI 3.1 as our own document uses. */
export interface Schema {
  $ref?: string
  title?: string
  description?: string
  type?: string | string[]
  format?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  patternProperties?: Record<string, Schema>
  items?: Schema
  default?: unknown
  examples?: unknown[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
}

interface Content {
  schema?: Schema
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  schema: Schema
  example?: unknown
}

export interface Answer {
  $ref?: string
  description?: string
  content?: Record<string, Content>
}

export interface Operation {
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, Content> }
  responses: Record<string, Answer>
  /** Of several, one is enough. */
  'x-belfry-scope': Scope | readonly Scope[] | null
  'x-optional-body'?: boolean
}

export interface OpenApiDocument {
  openapi: string
  info: { title: string; version: string; description: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas?: Record<string, Schema>; responses?: Record<string, Answer> }
}
