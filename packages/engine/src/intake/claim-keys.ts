import { type BelfryError, refusal } from '../errors.ts'
import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { isLockTimeout } from '../store/database-errors.ts'
import { missingOf } from './announce-payloads.ts'
import { type Answer, claimUnique, type UniqueTerms, uniqueKeyOf } from './claim-unique.ts'
import {
  freeForgotten,
  KEY_KIND,
  type Key,
  type KeyHolder,
  keyText,
  pointKeys,
  readKeys,
  stillUnderWay,
  takeKeys,
  takeOverName,
} from './keys.sql.ts'
import type { Prepared } from './put-prepared.ts'

const NO_HOLDERS: ReadonlyMap<string, KeyHolder> = new Map()

/** What decides about keys besides the keys themselves. */
export interface KeyTerms extends UniqueTerms {
  /** Those whose payload is missing: they may be the repetition of a request, but nothing new. */
  missing: ReadonlySet<Prepared>
  /** A job that was created earlier may have been dropped with its history. */
  forgottenBefore: Instant
}

export interface KeyAnswer extends Answer {
  /** The same request was made before. */
  isRepeated?: true
}

/**
 * Takes all keys of a call, in order. Answers the jobs that exist already: by idempotency key first, then by unique key; a request
 * that is answered does not ask for its name again. Throws if a key or name belongs to something else.
 */
export async function claimKeys(
  tx: Queryable,
  keyed: readonly Prepared[],
  terms: KeyTerms,
): Promise<Map<Prepared, KeyAnswer>> {
  const answers = new Map<Prepared, KeyAnswer>()
  const owners = new Map<string, { item: Prepared; key: Key }>()
  for (const item of keyed) {
    for (const key of item.keys) {
      const first = owners.get(keyText(key))
      if (!first) owners.set(keyText(key), { item, key })
      else if (key.kind === KEY_KIND.idempotency) {
        if (first.key.fingerprint !== key.fingerprint) throw mismatch(key.key)
        answers.set(item, { jobId: first.item.job.jobId })
      }
    }
  }
  const keys = [...owners.values()].map(({ key }) => key)
  const taken = await takeWithin(tx, keys, terms)
  const missing = keys.filter((key) => !taken.has(keyText(key)))
  const held = missing.length === 0 ? NO_HOLDERS : await readKeys(tx, missing)
  for (const item of keyed) {
    const key = item.keys.find(({ kind }) => kind === KEY_KIND.idempotency)
    const holder = key && held.get(keyText(key))
    // Held by the very job: an earlier try was committed, and its answer was lost.
    if (!key || !holder || holder.jobId === item.job.jobId) continue
    if (holder.fingerprint !== key.fingerprint) throw mismatch(key.key)
    answers.set(item, { jobId: holder.jobId, isRepeated: true })
  }
  await answerByUnique(tx, keyed, held, answers, terms)
  const claimed = await claimNames(tx, keyed, held, answers)
  // The first of the call that has the name may have been answered by another job.
  const pointed = claimed.filter((key) => taken.has(keyText(key)) && owners.get(keyText(key))?.key.jobId !== key.jobId)
  if (pointed.length > 0) await pointKeys(tx, pointed)
  return answers
}

async function answerByUnique(
  tx: Queryable,
  keyed: readonly Prepared[],
  held: ReadonlyMap<string, KeyHolder>,
  answers: Map<Prepared, KeyAnswer>,
  { missing, ...terms }: KeyTerms,
): Promise<void> {
  const unique = keyed.filter((item) => uniqueKeyOf(item) !== undefined && !answers.has(item))
  if (unique.length === 0) return
  const lost = unique.find((item) => missing.has(item))
  if (lost) throw missingOf(lost)
  const found = await claimUnique(tx, unique, held, terms)
  if (found.size === 0) return
  const instead = new Map([...found].map(([item, { jobId }]) => [item.job.jobId, jobId]))
  // The same request in the same call, and later, is answered like the first.
  for (const [item, answer] of answers)
    answers.set(item, { ...answer, jobId: instead.get(answer.jobId) ?? answer.jobId })
  const pointed = [...found].flatMap(([item, { jobId }]) =>
    item.keys.filter(({ kind }) => kind === KEY_KIND.idempotency).map((key) => ({ ...key, jobId })),
  )
  if (pointed.length > 0) await pointKeys(tx, pointed)
  for (const [item, answer] of found) answers.set(item, answer)
}

async function claimNames(
  tx: Queryable,
  keyed: readonly Prepared[],
  held: ReadonlyMap<string, KeyHolder>,
  answers: ReadonlyMap<Prepared, Answer>,
): Promise<Key[]> {
  const names = new Map<string, Key>()
  for (const item of keyed) {
    const key = item.keys.find(({ kind }) => kind === KEY_KIND.name)
    if (key === undefined || answers.has(item)) continue
    const text = keyText(key)
    if (names.has(text)) throw nameTaken(key.key)
    names.set(text, key)
    const holder = held.get(text)
    if (!holder || holder.jobId === item.job.jobId) continue
    const heldBy = { jobId: holder.jobId, shard: shardOfJob(holder.jobId) }
    if (!(await takeOverName(tx, key, heldBy))) throw nameTaken(key.key)
  }
  return [...names.values()]
}

async function takeWithin(
  tx: Queryable,
  keys: readonly Key[],
  { now, forgottenBefore }: KeyTerms,
): Promise<Set<string>> {
  try {
    const taken = await takeKeys(tx, keys, now)
    const held = keys.filter((key) => key.kind === KEY_KIND.idempotency && !taken.has(keyText(key)))
    const freed = held.length === 0 ? [] : await freeForgotten(tx, held, forgottenBefore)
    return freed.length === 0 ? taken : new Set([...taken, ...(await takeKeys(tx, freed, now))])
  } catch (error) {
    throw isLockTimeout(error) ? stillUnderWay(error) : error
  }
}

function nameTaken(name: string): BelfryError {
  const message = `another job is called "${name}"`
  return refusal('name_taken', 'name', message, message)
}

function mismatch(key: string): BelfryError {
  const message = 'was used with another request'
  return refusal('idempotency_mismatch', 'idempotencyKey', message, `the idempotency key "${key}" ${message}`)
}
