import type { FastifySchemaCompiler } from 'fastify'
import { type Static, type TSchema, type TUnsafe, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { Settings } from 'typebox/system'
import { complaintsOf, findUnstorable, MAX_COMPLAINTS, notAnObject, refusal } from './complaints.ts'

Settings.Set({ maxErrors: MAX_COMPLAINTS })

const optional = new WeakSet<object>()
const judgedByEngine = new WeakSet<object>()
const compared = new WeakMap<object, string>()

/** A body that may be left out altogether: the handler then gets `undefined`. */
export function optionalBody<Schema extends TSchema>(schema: Schema): TUnsafe<Static<Schema> | undefined> {
  const copy = Type.Unsafe<Static<Schema> | undefined>({ ...schema })
  optional.add(copy)
  return copy
}

export const isOptionalBody = (schema: object): boolean => optional.has(schema)

/** A body that the schema only documents: any object passes, and the engine, which knows better, judges it. */
export function judgedBelow<Body, Schema extends TSchema = TSchema>(schema: Schema): TUnsafe<Body> {
  const copy = Type.Unsafe<Body>({ ...schema })
  judgedByEngine.add(copy)
  return copy
}

/** A body in which texts under this key are compared with what is known, and never stored: they may hold anything. */
export function onlyCompares<Schema extends TSchema>(key: string, schema: Schema): Schema {
  compared.set(schema, key)
  return schema
}

/**
 * One schema checks one part of a request; what is wrong becomes one `invalid_request` that names it all. Only texts of the
 * address are turned into numbers and booleans, never what stands in a body.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  if (judgedByEngine.has(schema)) {
    return (body: unknown) => (isObject(body) ? true : { error: refusal([notAnObject(body)]) })
  }
  const validator = Compile(schema)
  const isText = httpPart === 'querystring' || httpPart === 'params'
  return (given: unknown) => {
    if (given === null && optional.has(schema)) return true
    const value = isText ? fromText(schema, given as Record<string, unknown>) : given
    if (!validator.Check(value)) return { error: refusal(complaintsOf(schema, validator.Errors(value), value)) }
    if (httpPart === 'headers') return true
    const unstorable = findUnstorable(value, compared.get(schema))
    return unstorable === null ? { value } : { error: refusal([unstorable]) }
  }
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Numbers and booleans of an address, each written in one way only. A name that is given twice is a list. */
function fromText(schema: TSchema, given: Record<string, unknown>): Record<string, unknown> {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> }
  const values: Record<string, unknown> = {}
  for (const name of Object.keys(given)) {
    values[name] = typed(Object.hasOwn(properties, name) ? properties[name]?.type : undefined, given[name])
  }
  return values
}

function typed(type: string | undefined, text: unknown): unknown {
  if (type === 'array') return Array.isArray(text) ? text : [text]
  if (typeof text !== 'string') return text
  if ((type === 'integer' || type === 'number') && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}
