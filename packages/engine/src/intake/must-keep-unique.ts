import { refusal } from '../errors.ts'
import type { Definition } from '../job/definition.ts'

/** A job keeps the key that it was created under, since its record names it; what counts and what happens then may change. */
export function mustKeepUnique({ unique: before }: Definition, { unique: after }: Definition): void {
  if (before?.key === after?.key) return
  const message = 'cannot be changed: create the job anew'
  throw refusal('invalid_job', 'unique.key', message, `unique.key ${message}`)
}
