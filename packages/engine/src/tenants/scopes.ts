import { type Complaints, readChoice } from '../input/read-fields.ts'

/** What a key may do. `admin` may do everything. */
export const SCOPES = ['read', 'write', 'worker', 'admin'] as const

export type Scope = (typeof SCOPES)[number]

/** Each once, in one order. */
export function readScopes(complaints: Complaints, value: unknown): Scope[] | undefined {
  if (!Array.isArray(value) || value.length === 0) {
    return complaints.add('scopes', `must be a list of at least one of ${SCOPES.join(', ')}`)
  }
  if (value.length > SCOPES.length) return complaints.add('scopes', `must have at most ${SCOPES.length} entries`)
  const read = value.map((scope, i) => readChoice(complaints, `scopes[${i}]`, scope, SCOPES))
  return SCOPES.filter((scope) => read.includes(scope))
}
