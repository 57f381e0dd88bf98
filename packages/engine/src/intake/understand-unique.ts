import { type Complaints, readChoice, readRecord, readText } from '../input/read-fields.ts'
import type { Definition } from '../job/definition.ts'

const MAX_KEY = 256
const WHILE = ['queued', 'active', 'both'] as const
const ON_CONFLICT = ['keep', 'replace', 'reject'] as const

/** Adds the unique key to a definition, where the job has one. */
export function addUnique(complaints: Complaints, definition: Definition, job: Record<string, unknown>): void {
  if (job.unique === undefined) return
  const record = readRecord(complaints, 'unique', job.unique, ['key', 'while', 'onConflict'])
  if (record === undefined) return
  const { while: given, onConflict: wanted } = record
  const key = readText(complaints, 'unique.key', record.key, MAX_KEY)
  const counts = given === undefined ? 'both' : readChoice(complaints, 'unique.while', given, WHILE)
  const onConflict = wanted === undefined ? 'keep' : readChoice(complaints, 'unique.onConflict', wanted, ON_CONFLICT)
  if (key === undefined || counts === undefined || onConflict === undefined) return
  definition.unique = {
    key,
    ...(counts === 'both' ? {} : { while: counts }),
    ...(onConflict === 'keep' ? {} : { onConflict }),
  }
}
