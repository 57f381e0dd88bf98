import { BelfryError, refusal } from '../errors.ts'
import type { Definition } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { inputOf, knownWords } from './input-of.ts'
import { type UnderstoodJob, understandJob } from './understand-job.ts'
import { KINDS } from './understand-when.ts'

const FIXED = ['name', 'tenant', 'idempotencyKey', 'idempotencyTtl', 'after', 'onParentFailure'] as const

/** Lays a patch over a stored definition: what it names replaces, null takes away, a new time replaces the old one. */
export function mergeUpdate(
  definitionJson: string,
  patch: unknown,
  at: { now: Instant; nominalAt: Instant | null },
): UnderstoodJob {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) {
    const message = 'must be an object with the fields that change'
    throw refusal('invalid_argument', 'patch', message, 'an update is an object with the fields that change')
  }
  for (const field of FIXED) if (field in patch) throw cannotChange(field)
  const definition = JSON.parse(definitionJson) as Definition
  const { name, ...input } = inputOf(definition, at.nominalAt)
  if (KINDS.some((field) => field in patch)) {
    for (const field of [...KINDS, 'timezone', 'startAt', 'endAt']) delete input[field]
    // An interval has no use for it, and nobody asked for both.
    if ('every' in patch) delete input.dst
  }
  if ('exclude' in patch && patch.exclude === null) delete input.onExcluded
  const merged = { ...input, ...read(patch) } as Record<string, unknown>
  for (const [field, value] of Object.entries(merged)) if (value === null && field !== 'payload') delete merged[field]
  return understandJob(name === undefined ? merged : { ...merged, name }, {
    now: at.now,
    ...knownWords(definition, at.nominalAt),
  })
}

export const cannotChange = (field: string): BelfryError =>
  refusal('invalid_job', field, 'cannot be changed', `${field} cannot be changed: create the job anew`)

/** A getter or a proxy of the caller may throw. */
function read(patch: object): object {
  try {
    return { ...patch }
  } catch (cause) {
    throw new BelfryError('invalid_job', 'the update cannot be read', { cause })
  }
}
