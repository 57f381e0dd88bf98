import type { Instant } from '../runtime/clock.ts'

/**
 * `{{nominalAt}}`, `{{runId}}`, `{{attempt}}` and `{{secret:name}}` in the texts of an HTTP target. Anything else between
 * double braces is refused when the job is created, and left alone here.
 */
const TEMPLATE = /\{\{\s*([^{}]*?)\s*\}\}/g
const SECRET = /^secret:([A-Za-z0-9._-]{1,128})$/

export const TEMPLATE_NAMES = ['nominalAt', 'runId', 'attempt'] as const

export interface TemplateValues {
  nominalAt: Instant
  runId: string
  attempt: number
  secrets: ReadonlyMap<string, string>
}

export function hasTemplate(text: string): boolean {
  return text.includes('{{')
}

/** What stands between double braces, in order. */
export function templatesIn(text: string): string[] {
  return Array.from(text.matchAll(TEMPLATE), ([, name]) => name as string)
}

/** The secret that a template names, if it names one. */
export function secretOf(name: string): string | undefined {
  return SECRET.exec(name)?.[1]
}

/** Replaces templates; `encode` makes a value fit for where it goes. */
export function fill(text: string, values: TemplateValues, encode: (value: string) => string = String): string {
  return text.replace(TEMPLATE, (whole, name: string) => {
    const value = templateValue(name, values)
    return value === undefined ? whole : encode(value)
  })
}

/** The same for every text inside a JSON value; names of members are left as they are. */
export function fillJson(value: unknown, values: TemplateValues): unknown {
  if (typeof value === 'string') return hasTemplate(value) ? fill(value, values) : value
  if (Array.isArray(value)) return value.map((item) => fillJson(item, values))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, fillJson(member, values)]))
}

function templateValue(name: string, { nominalAt, runId, attempt, secrets }: TemplateValues): string | undefined {
  switch (name) {
    case 'nominalAt':
      return new Date(nominalAt).toISOString()
    case 'runId':
      return runId
    case 'attempt':
      return String(attempt)
    default: {
      const secret = secretOf(name)
      return secret === undefined ? undefined : secrets.get(secret)
    }
  }
}
