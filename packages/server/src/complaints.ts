import { BelfryError, type Complaint, nearestName, parseInstant } from '@belfry/engine'
import type { TSchema } from 'typebox'
import type { TLocalizedValidationError } from 'typebox/error'

/** Nobody reads more, and a body with a million mistakes must not become a larger answer. */
export const MAX_COMPLAINTS = 100

export function refusal(complaints: Complaint[]): BelfryError {
  const [first] = complaints
  const place = first?.path ? `${first.path}: ` : ''
  const hint = first?.suggestion === undefined ? '' : `; did you mean ${first.suggestion}?`
  const more = complaints.length > 1 ? ` (and ${complaints.length - 1} more)` : ''
  return new BelfryError('invalid_request', `${place}${first?.message}${hint}${more}`, { complaints })
}

export const notAnObject = (value: unknown): Complaint => ({
  path: '',
  message: value === null || value === undefined ? 'a body is needed: an object of JSON' : 'the body must be an object',
})

/** What a validator found, in the words and with the paths that the engine uses for its own complaints. */
export function complaintsOf(schema: TSchema, errors: TLocalizedValidationError[], value: unknown): Complaint[] {
  const complaints: Complaint[] = []
  const choices = errors.filter(({ keyword }) => keyword === 'anyOf').map((error) => choiceOf(error, errors))
  for (const error of errors) {
    if (choices.some((choice) => isWithin(error, choice) && !isAbout(error, choice))) continue
    if (error.keyword === 'anyOf' && choices.some((choice) => choice.error === error && choice.meant !== null)) continue
    if (error.keyword === 'type' && errors.some((other) => isPreciser(other, error))) continue
    complaints.push(...complaintsOfOne(schema, error, value))
    if (complaints.length >= MAX_COMPLAINTS) break
  }
  return complaints.slice(0, MAX_COMPLAINTS)
}

/** Says of the same place which value it must be, and so of which type. */
const isPreciser = (
  other: TLocalizedValidationError,
  { schemaPath, instancePath }: TLocalizedValidationError,
): boolean =>
  (other.keyword === 'const' || other.keyword === 'enum') &&
  other.schemaPath === schemaPath &&
  other.instancePath === instancePath

/** A value that fits none of several forms, and the one of them that it was meant to have. */
interface Choice {
  error: TLocalizedValidationError
  /** The pointer to that form; null: it has the type of none of them, or of several. */
  meant: string | null
}

/**
 * Within alternatives each says why it was not meant. Where the value has the type of only one, what is wrong with that one
 * is what its writer wants to know; else what stands for all of them is enough.
 */
function choiceOf(error: TLocalizedValidationError, errors: readonly TLocalizedValidationError[]): Choice {
  const within = errors.filter((other) => isWithin(other, { error }))
  const formOf = ({ schemaPath }: TLocalizedValidationError) =>
    schemaPath.slice(0, `${schemaPath}/`.indexOf('/', `${error.schemaPath}/anyOf/`.length))
  const forms = new Set(within.map(formOf))
  for (const other of within) {
    if (other.keyword === 'type' && other.instancePath === error.instancePath) forms.delete(formOf(other))
  }
  const [meant = null] = forms.size === 1 ? forms : []
  return { error, meant }
}

const isWithin = ({ schemaPath, instancePath }: TLocalizedValidationError, { error }: Pick<Choice, 'error'>): boolean =>
  schemaPath.startsWith(`${error.schemaPath}/anyOf/`) && `${instancePath}/`.startsWith(`${error.instancePath}/`)

const isAbout = ({ schemaPath }: TLocalizedValidationError, { meant }: Choice): boolean =>
  meant !== null && `${schemaPath}/`.startsWith(`${meant}/`)

function complaintsOfOne(schema: TSchema, error: TLocalizedValidationError, value: unknown): Complaint[] {
  const { instancePath, schemaPath, message } = error
  const path = keysOf(instancePath).reduce(joined, '')
  const found = valueAt(value, instancePath)
  switch (error.keyword) {
    // Each unknown name is said twice: here, and together with the others below.
    case 'boolean':
      return []
    case 'additionalProperties': {
      const { properties, 'x-elsewhere': elsewhere } = valueAt(schema, schemaPath.slice(1)) as Elsewhere
      const known = Object.keys(properties ?? {})
      return error.params.additionalProperties.slice(0, MAX_COMPLAINTS).map((name) => {
        const place = elsewhere?.[name]
        if (place !== undefined) return complaint(joined(path, name), `there is no such field: ${place}`)
        return complaint(joined(path, name), 'there is no such field', nearestName(name, known))
      })
    }
    case 'required':
      return error.params.requiredProperties.map((name) => complaint(joined(path, name), 'is missing'))
    case 'enum':
      return [oneOf(path, error.params.allowedValues, found)]
    case 'const':
      return [oneOf(path, [error.params.allowedValue], found)]
    case 'type':
      if (path === '') return [notAnObject(found)]
      return [complaint(path, `must be ${articled(error.params.type)}, not ${shown(found)}`)]
    case 'minimum':
    case 'maximum':
      return [complaint(path, `must be ${boundsOf(valueAt(schema, schemaPath.slice(1)))}, not ${shown(found)}`)]
    case 'anyOf':
      return [complaint(path, `has none of the forms it may have`)]
    case 'format':
      return [error.params.format === 'date-time' ? aboutInstant(path, found, message) : complaint(path, message)]
    default:
      return [complaint(path, message)]
  }
}

/** Fields that are looked for here, and where what they are meant for is done. */
interface Elsewhere {
  properties?: object
  'x-elsewhere'?: Record<string, string>
}

function boundsOf(schema: unknown): string {
  const { type, minimum, maximum } = schema as { type?: string | string[]; minimum?: number; maximum?: number }
  const number = [type].flat().includes('integer') ? 'a whole number' : 'a number'
  if (minimum !== undefined && maximum !== undefined) return `${number} from ${minimum} to ${maximum}`
  return minimum === undefined ? `${number} up to ${maximum}` : `${number} of at least ${minimum}`
}

function oneOf(path: string, allowed: unknown[], value: unknown): Complaint {
  const words = allowed.map(String)
  const choice = words.length > 1 ? `one of ${words.join(', ')}` : words.join()
  const suggestion = typeof value === 'string' ? nearestName(value, words) : undefined
  return complaint(path, `must be ${choice}, not ${shown(value)}`, suggestion)
}

/** A plus that was not encoded arrives as a space. */
const PLUS_LOST = /^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d+)?)?) (\d\d:\d\d)$/

/** An instant is judged as those of a job are. */
function aboutInstant(path: string, value: unknown, otherwise: string): Complaint {
  const [, time, offset] = PLUS_LOST.exec(String(value)) ?? []
  if (time !== undefined)
    return complaint(
      path,
      `${shown(value)} has a space where the "+" of its offset belongs; in an address "+" is written %2B`,
      `${time}%2B${offset}`,
    )
  try {
    parseInstant(value)
    return complaint(path, otherwise)
  } catch (error) {
    if (!(error instanceof BelfryError)) throw error
    return complaint(path, error.message, error.complaints[0]?.suggestion)
  }
}

const complaint = (path: string, message: string, suggestion?: string): Complaint =>
  suggestion === undefined ? { path, message } : { path, message, suggestion }

const WORDS: Record<string, string> = {
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
}

const articled = (type: string | string[]): string =>
  (Array.isArray(type) ? type : [type]).map((one) => WORDS[one] ?? one).join(' or ')

function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

const keysOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))

/** A path that can be read and copied, whatever the key is. */
function joined(path: string, key: string): string {
  if (/^\d+$/.test(key)) return `${path}[${key}]`
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `${path}[${shown(key)}]`
  return path === '' ? key : `${path}.${key}`
}

function valueAt(value: unknown, pointer: string): unknown {
  return keysOf(pointer).reduce<unknown>((at, key) => (at as Record<string, unknown> | null | undefined)?.[key], value)
}

/**
 * PostgreSQL's text holds neither NUL nor half of a surrogate pair; such a text is refused before it comes near one. What is
 * only compared may hold anything, and is named by its key.
 */
export const findUnstorable = (value: unknown, compared?: string): Complaint | null =>
  isStorable(value, compared) ? null : unstorableIn(value, '', compared)

const isStorableText = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** Without paths, which cost more than the look at the texts. */
function isStorable(value: unknown, compared?: string): boolean {
  if (typeof value === 'string') return isStorableText(value)
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isStorable(value[i], compared)) return false
    return true
  }
  for (const key in value) {
    if (key === compared) continue
    if (!isStorableText(key) || !isStorable((value as Record<string, unknown>)[key], compared)) return false
  }
  return true
}

function unstorableIn(value: unknown, path: string, compared?: string): Complaint | null {
  if (typeof value === 'string') {
    if (isStorableText(value)) return null
    return { path, message: 'contains a NUL character or half of a surrogate pair, which cannot be stored' }
  }
  if (typeof value !== 'object' || value === null) return null
  for (const [key, member] of Object.entries(value)) {
    if (key === compared) continue
    const found = unstorableIn(key, path) ?? unstorableIn(member, joined(path, key), compared)
    if (found !== null) return found
  }
  return null
}
