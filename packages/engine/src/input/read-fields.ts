import { BelfryError, type Complaint, type ErrorCode } from '../errors.ts'
import { nearestName } from '../job/nearest-name.ts'
import { clockMs, formatDuration } from '../schedule/duration.ts'
import { shown } from '../schedule/not-understood.ts'

/** Nobody reads more, and an input with a million mistakes must not become a larger answer. */
const MAX_COMPLAINTS = 100

/** Everything that is wrong with one input: it is collected, so that one answer names it all. */
export class Complaints {
  readonly list: Complaint[] = []

  add(path: string, message: string, suggestion?: string): undefined {
    if (this.list.length >= MAX_COMPLAINTS) return
    this.list.push(suggestion === undefined ? { path, message } : { path, message, suggestion })
  }

  get isFull(): boolean {
    return this.list.length >= MAX_COMPLAINTS
  }

  /** Runs a reader that throws what it cannot understand, and files that under the path. */
  read<T>(path: string, reader: () => T): T | undefined {
    try {
      return reader()
    } catch (error) {
      if (!(error instanceof BelfryError)) throw error
      return this.add(path, error.message, error.complaints[0]?.suggestion)
    }
  }

  error(code: ErrorCode): BelfryError {
    const [first] = this.list
    const others = this.list.length - 1
    const place = first?.path ? `${first.path}: ` : ''
    const hint = first?.suggestion === undefined ? '' : `; did you mean ${first.suggestion}?`
    const more = others > 0 ? ` (and ${others} more)` : ''
    return new BelfryError(code, `${place}${first?.message}${hint}${more}`, { complaints: this.list })
  }
}

/** PostgreSQL's text and jsonb hold neither NUL nor half of a surrogate pair. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && !/\p{Surrogate}/u.test(text)
}

export function unstorable(text: string): string {
  return text.includes('\0')
    ? 'contains a NUL character, which PostgreSQL cannot store'
    : 'contains half of a surrogate pair, which is not valid Unicode'
}

/** A path that can be read and copied, whatever the key is. */
export function join(path: string, key: string): string {
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `${path}[${shown(key)}]`
  return path === '' ? key : `${path}.${key}`
}

export function readText(complaints: Complaints, path: string, value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') return complaints.add(path, `must be a text, not ${shown(value)}`)
  if (value.trim() === '') return complaints.add(path, 'must not be empty')
  if (value.length > maxLength) {
    return complaints.add(path, `must have at most ${maxLength} characters, not ${value.length}`)
  }
  return isStorable(value) ? value : complaints.add(path, unstorable(value))
}

/** The name of a queue, a tenant, a calendar or a secret. */
export const WORD = /^[A-Za-z0-9._-]{1,128}$/

export const isWord = (value: unknown): value is string => typeof value === 'string' && WORD.test(value)

export function readWord(complaints: Complaints, path: string, value: unknown): string | undefined {
  if (isWord(value)) return value
  if (typeof value !== 'string') return complaints.add(path, `must be a text, not ${shown(value)}`)
  if (value === '') return complaints.add(path, 'must not be empty')
  if (value.length > 128) return complaints.add(path, `must have at most 128 characters, not ${value.length}`)
  const cleaned = value.trim().replace(/[^A-Za-z0-9._-]+/g, '-')
  const suggestion = /[A-Za-z0-9]/.test(cleaned) ? cleaned : undefined
  return complaints.add(path, `${shown(value)} may only have letters, digits, ".", "_" and "-"`, suggestion)
}

export function readInteger(
  complaints: Complaints,
  path: string,
  value: unknown,
  min: number,
  max: number,
): number | undefined {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  const suggestion = typeof value === 'string' && /^\d{1,9}$/.test(value) ? value : undefined
  return complaints.add(path, `must be a whole number from ${min} to ${max}, not ${shown(value)}`, suggestion)
}

export function readNumber(
  complaints: Complaints,
  path: string,
  value: unknown,
  min: number,
  max: number,
): number | undefined {
  if (typeof value === 'number' && value >= min && value <= max) return value
  return complaints.add(path, `must be a number from ${min} to ${max}, not ${shown(value)}`)
}

/** Elapsed time between two bounds. */
export function readClockMs(
  complaints: Complaints,
  path: string,
  value: unknown,
  minMs: number,
  maxMs: number,
): number | undefined {
  const ms = complaints.read(path, () => clockMs(value))
  if (ms === undefined) return undefined
  if (ms >= minMs && ms <= maxMs) return ms
  const [word, bound] = ms < minMs ? ['least', minMs] : ['most', maxMs]
  return complaints.add(path, `must be at ${word} ${formatDuration({ kind: 'clock', ms: bound })}, not ${shown(value)}`)
}

export function readChoice<Choice extends string>(
  complaints: Complaints,
  path: string,
  value: unknown,
  choices: readonly Choice[],
): Choice | undefined {
  const chosen = choices.find((choice) => choice === value)
  if (chosen !== undefined) return chosen
  const suggestion = typeof value === 'string' ? nearestName(value, choices) : undefined
  return complaints.add(path, `must be one of ${choices.join(', ')}, not ${shown(value)}`, suggestion)
}

/** Sets a field if something was given for it that could be read, and that is not what holds anyway. */
export function setGiven<Target extends object, Name extends keyof Target>(
  target: Target,
  name: Name,
  given: unknown,
  read: (given: unknown) => Target[Name] | undefined,
  usual?: Target[Name],
): void {
  const value = given === undefined ? undefined : read(given)
  if (value !== undefined && value !== usual) target[name] = value
}

/** An object with known keys; whatever else is in it is complained about. */
export function readRecord(
  complaints: Complaints,
  path: string,
  value: unknown,
  keys: readonly string[],
): Record<string, unknown> | undefined {
  if (!isRecord(value)) return complaints.add(path, `must be an object, not ${shown(value)}`)
  for (const key of Object.keys(value)) {
    if (!keys.includes(key) && value[key] !== undefined) {
      complaints.add(join(path, key), `is not a field of ${path}`, nearestName(key, keys))
    }
  }
  return value
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}
