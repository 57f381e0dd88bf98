import { refusal } from '../errors.ts'
import { isRecord } from '../input/read-fields.ts'

/** Of all jobs of a call together. So many are written in a second or two; a thousand for each of its jobs would be a hundred times that. */
const MAX_EDGES = 100_000

/** Counted as they are given, before anything is made of them. */
export function mustBoundEdges(inputs: readonly unknown[]): void {
  let edges = 0
  for (const input of inputs) {
    const after = isRecord(input) ? input.after : undefined
    if (isRecord(after) && Array.isArray(after.jobs)) edges += after.jobs.length
  }
  if (edges <= MAX_EDGES) return
  const message = `may name at most ${MAX_EDGES} jobs to wait for in one call, all after.jobs together, not ${edges}: let jobs in between wait for some`
  throw refusal('invalid_argument', 'jobs', message)
}
