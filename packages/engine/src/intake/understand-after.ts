import { type Complaints, isRecord, readChoice, readRecord, readText, setGiven } from '../input/read-fields.ts'
import type { OnParentFailure, Wanted } from '../job/after.ts'
import type { Definition } from '../job/definition.ts'
import { isJobId } from '../job/ids.ts'
import { OVERLAP, type Overlap } from '../job/states.ts'
import { shown } from '../schedule/not-understood.ts'
import { NOW, type UnderstoodWhen, WHEN_FIELDS } from './understand-when.ts'

const MAX_PARENTS = 1_000
const MAX_REF = 128
const WANTED: readonly Wanted[] = ['success', 'failure', 'finish']
const ON_FAILURE: readonly OnParentFailure[] = ['cancel', 'run', 'block']
const OVERLAPS = Object.keys(OVERLAP) as Overlap[]

/**
 * Runs of a job that follows others wait for each other unless it says otherwise: with `skip`, which is the default of
 * schedules, it would lose runs whenever it is slower than what it follows.
 */
const CHAIN_OVERLAP: Overlap = 'buffer_all'

/** What a job waits for, as it was written: ids, or local names of the same call. What those are is found out when it is created. */
export function understandAfter(
  complaints: Complaints,
  definition: Definition,
  job: Record<string, unknown>,
): UnderstoodWhen {
  const { after, onParentFailure, overlap } = job
  for (const field of WHEN_FIELDS) {
    if (job[field] === undefined || field === 'overlap') continue
    complaints.add(field, 'cannot stand beside after: the job runs when those that it waits for have ended')
  }
  const record = readRecord(complaints, 'after', after, ['jobs', 'on'])
  if (record === undefined) return NOW
  const jobs = readNames(complaints, record.jobs)
  const on = record.on === undefined ? 'success' : readChoice(complaints, 'after.on', record.on, WANTED)
  const policy =
    onParentFailure === undefined ? 'cancel' : readChoice(complaints, 'onParentFailure', onParentFailure, ON_FAILURE)
  if (onParentFailure !== undefined && on !== undefined && on !== 'success') {
    complaints.add(
      'onParentFailure',
      `has no meaning beside after.on "${on}": only who waits for success can be failed`,
    )
  }
  definition.after = {
    jobs,
    ...(on === undefined || on === 'success' ? {} : { on }),
    ...(policy === undefined || policy === 'cancel' ? {} : { onParentFailure: policy }),
  }
  if (isRecord(job.unique) && job.unique.onConflict === 'replace')
    complaints.add('unique.onConflict', 'cannot be replace beside after: who waits is not put in the place of another')
  setGiven(definition, 'overlap', overlap, (value) => readChoice(complaints, 'overlap', value, OVERLAPS))
  return NOW
}

export const overlapOfChain = ({ overlap }: Definition): Overlap => overlap ?? CHAIN_OVERLAP

/** Each once, in the order in which they were first named. */
function readNames(complaints: Complaints, value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0) {
    const given = Array.isArray(value) ? 'an empty one' : shown(value)
    complaints.add('after.jobs', `must be a list of at least one job, not ${given}`)
    return []
  }
  const names = new Set<string>()
  for (let i = 0; i < value.length; i++) {
    const name = value[i]
    const word = readText(complaints, `after.jobs[${i}]`, name, MAX_REF)
    if (word !== undefined) names.add(isJobId(word) ? word.toLowerCase() : word)
    if (complaints.isFull) break
  }
  if (names.size > MAX_PARENTS)
    complaints.add(
      'after.jobs',
      `must be at most ${MAX_PARENTS} jobs, not ${names.size}: let jobs in between wait for some`,
    )
  return [...names]
}

/** The local name of a job, by which others of the same call wait for it. */
export function readRef(complaints: Complaints, job: Record<string, unknown>, isCall: boolean): string | null {
  const { ref } = job
  if (ref === undefined) return null
  if (!isCall) {
    complaints.add('ref', 'only has a meaning in a call that creates several jobs')
    return null
  }
  const word = readText(complaints, 'ref', ref, MAX_REF)
  if (word === undefined) return null
  if (isJobId(word)) complaints.add('ref', 'must not look like the id of a job')
  return word
}

/** `onParentFailure` without anything to wait for. */
export function complainAboutNoAfter(complaints: Complaints, job: Record<string, unknown>): void {
  if (job.onParentFailure !== undefined) complaints.add('onParentFailure', 'has no meaning without after')
}
