import { BelfryError } from '../errors.ts'
import type { UniqueKey } from '../job/definition.ts'
import type { ReadyRun } from '../ready/insert-runs.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { keepOrigin } from './keep-origin.ts'
import { KEY_KIND, type Key, type KeyHolder, keyText } from './keys.sql.ts'
import type { Prepared } from './put-prepared.ts'
import { definitionOf, type LivingJob, readLiving, writeUniqueKeys } from './unique-keys.sql.ts'

/** The job that is the answer to a create, instead of the new one. */
export interface Answer {
  jobId: string
  /** It has become what the new one was to be. */
  replacement?: Replacement
}

export interface UniqueTerms {
  now: Instant
  /** Puts a new definition in the place of a job that has not started. `moved`: it has, or is over. */
  replace(tx: Queryable, jobId: string, item: Prepared, now: Instant): Promise<Replacement | Refused | 'moved'>
  /** The same was sent before, and nobody knows whether it was committed. */
  isResent: boolean
}

export interface Refused {
  refused: string
}

/** When a job that was replaced runs, and what others should know of after the commit. */
export interface Replacement {
  nominalAt: Instant
  dueAt: Instant
  ready: readonly ReadyRun[]
  asked: readonly Instant[]
}

/** Jobs under one key that are remembered: with `while`, more than one may be there. */
const MAX_REMEMBERED = 101
/** Each further try means that the job moved on at this very moment. */
const MAX_TRIES = 3
/** After this it is looked whether a key is still needed. */
export const KEEP_UNIQUE_MS = DAY_MS

/** A job that is there, or is about to be made by the same call. */
interface Holder extends LivingJob {
  item: Prepared | null
}

export const uniqueKeyOf = ({ keys }: Prepared): Key | undefined => keys.find(({ kind }) => kind === KEY_KIND.unique)

/** Whether a job keeps another from being made under its key, as the other says. */
export const counts = ({ isQueued, isActive }: LivingJob, { while: wanted }: UniqueKey): boolean =>
  wanted === 'queued' ? isQueued : wanted === 'active' ? isActive : true

/**
 * Decides who of these may be made beside the jobs that have their unique keys. The transaction holds the rows of the keys, so
 * that whoever creates, retries or replaces under one of them does so before or after. A key is freed lazily: a job that does not
 * count is no reason, and one that is over is forgotten. `held` are the records that were there before.
 */
export async function claimUnique(
  tx: Queryable,
  items: readonly Prepared[],
  held: ReadonlyMap<string, KeyHolder>,
  terms: UniqueTerms,
): Promise<Map<Prepared, Answer>> {
  const groups = new Map<string, { key: Key; items: Prepared[] }>()
  for (const item of items) {
    const key = uniqueKeyOf(item)
    if (key === undefined) continue
    const group = groups.get(keyText(key))
    if (group) group.items.push(item)
    else groups.set(keyText(key), { key, items: [item] })
  }
  const known = [...groups.keys()].flatMap((text) => idsOf(held.get(text)))
  const living = await readLiving(tx, known)
  const answers = new Map<Prepared, Answer>()
  const changed: (Key & { others: string[] })[] = []
  for (const [text, { key, items }] of groups) {
    const record = held.get(text)
    const holders = idsOf(record).flatMap((jobId): Holder[] => {
      const job = living.get(jobId)
      return job ? [{ ...job, item: null }] : []
    })
    for (const item of items) {
      // Sent again: it is there already, or has been.
      if (record && idsOf(record).includes(item.job.jobId)) continue
      await place(tx, { item, holders, answers, terms })
    }
    const [newest, ...others] = holders.slice(0, MAX_REMEMBERED).map(({ jobId }) => jobId)
    const isAsItWas = record ? holders.every(({ item }) => item === null) : others.length === 0 && newest === key.jobId
    if (newest !== undefined && !isAsItWas) changed.push({ ...key, jobId: newest, others })
  }
  if (changed.length > 0) await writeUniqueKeys(tx, changed, terms.now + KEEP_UNIQUE_MS)
  return answers
}

interface Placing {
  item: Prepared
  /** Newest first; changed here. */
  holders: Holder[]
  answers: Map<Prepared, Answer>
  terms: UniqueTerms
}

async function place(tx: Queryable, { item, holders, answers, terms }: Placing): Promise<void> {
  const unique = item.understood.definition.unique as UniqueKey
  for (let tries = 1; ; tries++) {
    const counting = holders.filter((holder) => counts(holder, unique))
    const [newest] = counting
    if (newest === undefined) {
      holders.unshift({ jobId: item.job.jobId, isQueued: true, isActive: false, item })
      return
    }
    if (unique.onConflict === undefined) {
      answers.set(item, { jobId: newest.jobId })
      return
    }
    const unstarted = counting.find(({ isQueued }) => isQueued)
    if (terms.isResent && unstarted === undefined && (await hasDefinition(tx, newest.jobId, item))) {
      answers.set(item, { jobId: newest.jobId })
      return
    }
    if (unique.onConflict === 'reject' || unstarted === undefined) throw conflict(item, unique, newest)
    if (unstarted.item !== null) {
      // Of the same call: nobody has seen it yet.
      answers.set(unstarted.item, { jobId: item.job.jobId })
      for (const [other, { jobId }] of answers)
        if (jobId === unstarted.jobId) answers.set(other, { jobId: item.job.jobId })
      holders[holders.indexOf(unstarted)] = { ...unstarted, jobId: item.job.jobId, item }
      return
    }
    const replacement = await terms.replace(tx, unstarted.jobId, item, terms.now)
    if (replacement !== 'moved') {
      if ('refused' in replacement) throw conflict(item, unique, unstarted, replacement.refused)
      answers.set(item, { jobId: unstarted.jobId, replacement })
      return
    }
    if (tries === MAX_TRIES) throw conflict(item, unique, unstarted)
    const living = await readLiving(
      tx,
      holders.flatMap((holder) => (holder.item === null ? [holder.jobId] : [])),
    )
    const left = holders.flatMap((holder): Holder[] => {
      const job = holder.item === null ? living.get(holder.jobId) : holder
      return job ? [{ ...job, item: holder.item }] : []
    })
    holders.splice(0, holders.length, ...left)
  }
}

/** It has been replaced by the same request, which was sent before. */
async function hasDefinition(tx: Queryable, jobId: string, { understood }: Prepared): Promise<boolean> {
  const found = await definitionOf(tx, jobId)
  if (found === null) return false
  return found.definitionJson === keepOrigin(understood, JSON.parse(found.definitionJson)).definitionJson
}

const idsOf = (record: KeyHolder | undefined): string[] => (record ? [record.jobId, ...record.others] : [])

/** Another job has the key, and is not to be kept or cannot be replaced. */
export class UniqueConflict extends BelfryError {
  /** The new job that was refused; null: a run that was to be opened again. */
  readonly item: Prepared | null
  /** The job of the same call that has the key; null: one that was there before. */
  readonly other: Prepared | null

  constructor(item: Prepared | null, message: string, other: Prepared | null = null) {
    super('unique_conflict', message, { complaints: [{ path: 'unique.key', message }] })
    this.item = item
    this.other = other
  }

  /** The same with the place of the other one, which nobody knows by its id. */
  inCall(jobs: readonly Prepared[]): UniqueConflict {
    if (this.other === null) return this
    return new UniqueConflict(this.item, `job ${jobs.indexOf(this.other)} of this call ${this.message}`)
  }
}

function conflict(item: Prepared, { key, onConflict }: UniqueKey, holder: Holder, why?: string): UniqueConflict {
  if (holder.item !== null) return new UniqueConflict(item, `has the unique key "${key}" too`, holder.item)
  const reason = why ?? (onConflict === 'replace' ? 'only a job that has not started can be replaced' : undefined)
  return new UniqueConflict(item, `${holderInWords(holder, key)}${reason === undefined ? '' : `: ${reason}`}`)
}

export const holderInWords = ({ jobId, isActive }: LivingJob, key: string): string =>
  `job ${jobId}, which ${isActive ? 'has started' : 'has not started'}, has the unique key "${key}"`
