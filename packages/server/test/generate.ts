import type { Chance } from './chance.ts'
import type { Document, Schema } from './openapi.ts'

const MAX_DEPTH = 6

/** Makes values that a schema allows, and some that it almost allows. */
export class Generator {
  readonly #document: Document
  readonly #chance: Chance
  readonly #known: (name: string) => readonly string[]

  /** `known`: what there is for fields of a name. */
  constructor(document: Document, chance: Chance, known: (name: string) => readonly string[] = () => []) {
    this.#document = document
    this.#chance = chance
    this.#known = known
  }

  /** A value that the schema allows, as far as the schema says it. */
  valid(given: Schema, depth = 0, name = ''): unknown {
    const chance = this.#chance
    const schema = this.#document.resolve(given)
    // Whoever waits long only makes the test long.
    if (name === 'waitMs') return chance.integer(0, 5)
    const known = this.#known(name)
    if (known.length > 0 && chance.happens(0.6)) return chance.pick(known)
    const examples = schema.examples ?? (schema.example === undefined ? [] : [schema.example])
    if (examples.length > 0 && chance.happens(0.3)) return structuredClone(chance.pick(examples))
    if (examples.length > 0 && depth === 0 && chance.happens(0.5)) return this.#varied(schema, chance.pick(examples))
    if ('const' in schema) return schema.const
    if (schema.enum) return chance.pick(schema.enum)
    const choices = schema.anyOf ?? schema.oneOf
    if (choices) return this.valid(chance.pick(choices), depth, name)
    if (schema.allOf) return Object.assign({}, ...schema.allOf.map((one) => this.valid(one, depth, name)))
    const type = Array.isArray(schema.type) ? chance.pick(schema.type) : schema.type
    switch (type ?? (schema.properties ? 'object' : undefined)) {
      case 'object':
        return this.#object(schema, depth)
      case 'array':
        return this.#array(schema, depth)
      case 'string':
        return this.#string(schema, name)
      case 'integer':
        return chance.integer(schema.minimum ?? -5, Math.min(schema.maximum ?? 2_000, (schema.minimum ?? 0) + 2_000))
      case 'number':
        return (schema.minimum ?? 0) + chance.float() * Math.min((schema.maximum ?? 100) - (schema.minimum ?? 0), 100)
      case 'boolean':
        return chance.happens(0.5)
      case 'null':
        return null
      default:
        return this.#anything(depth)
    }
  }

  /** An example with one field more, or with another value in one. */
  #varied(schema: Schema, example: unknown): unknown {
    const fields = Object.entries(schema.properties ?? {})
    if (typeof example !== 'object' || example === null || fields.length === 0) return structuredClone(example)
    const [name, property] = this.#chance.pick(fields)
    return { ...structuredClone(example), [name]: this.valid(property, 1, name) }
  }

  /** Nothing that need not be there: for tests that want an answer other than a complaint about the body. */
  smallest(given: Schema): unknown {
    const schema = this.#document.resolve(given)
    const [example] = schema.examples ?? (schema.example === undefined ? [] : [schema.example])
    if (example !== undefined) return structuredClone(example)
    return schema.type === 'object' || schema.properties ? this.required(schema) : this.valid(schema)
  }

  /** An object with the fields that must be there and no others. */
  required(given: Schema): Record<string, unknown> {
    const schema = this.#document.resolve(given)
    const names = schema.required ?? []
    return Object.fromEntries(names.map((name) => [name, this.smallest(schema.properties?.[name] ?? {})]))
  }

  #object(schema: Schema, depth: number): Record<string, unknown> {
    const chance = this.#chance
    const made: Record<string, unknown> = {}
    const often = depth === 0 ? 0.35 : 0.5
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const isRequired = schema.required?.includes(name) ?? false
      if (isRequired || (depth < MAX_DEPTH && chance.happens(often))) made[name] = this.valid(property, depth + 1, name)
    }
    const others = schema.additionalProperties ?? Object.values(schema.patternProperties ?? {})[0]
    const atLeast = schema.minProperties ?? 0
    if (others !== undefined && typeof others === 'object' && depth < MAX_DEPTH) {
      const count = Math.max(atLeast, chance.integer(0, 3))
      for (let i = 0; i < count; i++) made[`key_${chance.integer(0, 99)}`] = this.valid(others, depth + 1)
    }
    const missing = Object.entries(schema.properties ?? {}).filter(([name]) => !(name in made))
    while (Object.keys(made).length < atLeast && missing.length > 0) {
      const [name, property] = missing.splice(chance.integer(0, missing.length - 1), 1)[0] as [string, Schema]
      made[name] = this.valid(property, depth + 1, name)
    }
    return made
  }

  #array(schema: Schema, depth: number): unknown[] {
    const least = schema.minItems ?? 0
    const count = depth >= MAX_DEPTH ? least : this.#chance.integer(least, Math.min(schema.maxItems ?? 4, least + 4))
    const items = Array.from({ length: count }, () => this.valid(schema.items ?? {}, depth + 1))
    return schema.uniqueItems ? [...new Set(items)] : items
  }

  #string(schema: Schema, name: string): string {
    const { minLength = 0, maxLength = 40, pattern } = schema
    const fits = (text: string) =>
      text.length >= minLength && text.length <= maxLength && (!pattern || new RegExp(pattern, 'u').test(text))
    const meant = MEANT[name] ?? (schema.format ? FORMATS[schema.format] : undefined)
    const candidates = meant !== undefined && this.#chance.happens(0.9) ? meant : WORDS
    for (let i = 0; i < 8; i++) {
      const text = this.#chance.pick(candidates)
      if (fits(text)) return text
    }
    return [...candidates, ...WORDS].find(fits) ?? 'x'.repeat(Math.min(Math.max(minLength, 1), 1_000))
  }

  #anything(depth: number): unknown {
    const chance = this.#chance
    const simple = [null, true, 0, -1.5, '', 'text', 'Ünï 😀', { a: 1 }, [1, 'two', null]]
    if (depth >= MAX_DEPTH || chance.happens(0.8)) return chance.pick(simple)
    return { list: [this.#anything(depth + 1)], at: this.#anything(depth + 1) }
  }
}

const DAY_MS = 86_400_000
const FORMATS: Record<string, string[]> = {
  'date-time': [
    '2026-01-01T00:00:00Z',
    '2026-06-30T23:59:59.999+02:00',
    new Date(Date.now() + DAY_MS).toISOString(),
    new Date(Date.now() + 2 * DAY_MS).toISOString(),
  ],
  uri: ['https://example.com/hook', 'http://127.0.0.1:9/x', 'https://a.example:8443/p?q=1'],
  uuid: ['0199aaaa-bbbb-7000-8000-000000000001'],
}
/** What fields of a name are meant to hold, where a schema can only say that it is text. */
const DURATIONS = ['10m', 'PT15M', '1h', '90s', 'PT30S', 'P1D', '500ms']
const MEANT: Record<string, string[]> = {
  cron: ['*/5 * * * *', '0 9 * * 1-5', '@daily', 'H H * * *', '0 0 L * *'],
  timezone: ['UTC', 'Europe/Berlin', 'America/New_York'],
  every: ['PT15M', '1h', 'P1M', '10m'],
  method: ['POST', 'GET', 'PUT'],
  url: ['https://example.com/hook', 'https://a.example:8443/p?run={{runId}}'],
  overlap: ['skip', 'allow'],
  runAt: FORMATS['date-time'] ?? [],
  startAt: ['2026-01-01T00:00:00Z'],
  endAt: ['2099-01-01T00:00:00Z'],
  ...Object.fromEntries(
    ['delay', 'timeout', 'initial', 'max', 'maxAge', 'jitter', 'window', 'startDeadline', 'idempotencyTtl'].map(
      (name) => [name, DURATIONS],
    ),
  ),
}
const WORDS = [
  'reports',
  'a',
  'emails.high',
  '10m',
  'PT15M',
  '1h',
  '90s',
  'PT30S',
  '*/5 * * * *',
  '0 9 * * 1-5',
  'UTC',
  'Europe/Berlin',
  'every weekday at 9am',
  'in 10 minutes',
  'https://example.com/hook',
  'POST',
  'skip',
  'latest',
  '2027-01-01T00:00:00Z',
  'bk_live_abcdefghijklmnopqrstuvwxyz0123456789',
  '0199aaaa-bbbb-7000-8000-000000000001',
  '0199aaaa-bbbb-7000-8000-000000000001.mfz4zk00',
  '12',
  '1',
]
