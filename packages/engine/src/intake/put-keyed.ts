import { findParents } from '../dependencies/await-parents.sql.ts'
import { batchOfCall } from '../dependencies/batches.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable, Transaction } from '../store/database.ts'
import { announcePayloads, missingOf, withdrawPayloads } from './announce-payloads.ts'
import { claimKeys, type KeyAnswer } from './claim-keys.ts'
import type { Answer, UniqueTerms } from './claim-unique.ts'
import { type CallLinks, closesBatch, linkJobs } from './link-jobs.ts'
import type { Sending } from './put-jobs.sql.ts'
import { type Created, createdOf, type Prepared, putAll } from './put-prepared.ts'

export interface PutTerms extends UniqueTerms {
  sending: Sending
  /** A job that was created earlier may have been dropped with its history. */
  forgottenBefore: Instant
  /** Throws if these may not be made, now that it is known which they are. */
  admit(fresh: readonly Prepared[]): void
  /** Who waits for whom, and the batch they form; null: nobody, and none. */
  links: CallLinks | null
  /** Somebody waits for a job that has ended before. */
  onTold(): void
}

/** One of a call, as it was made or answered. */
export interface Put {
  created: Created
  /** The job that was there, if one was. */
  answer: Answer | null
}

/**
 * Takes the keys first, in order, then inserts what is new; the payloads that jobs name are announced before both. A key that
 * another transaction is just taking is waited for a second at most, then the caller hears `in_progress`. The same key twice
 * in one batch is one job.
 */
export async function putKeyed(
  tx: Queryable | Transaction,
  prepared: readonly Prepared[],
  terms: PutTerms,
): Promise<Put[]> {
  const { now } = terms
  const missing = await announcePayloads(tx, prepared, now)
  const keyed = prepared.filter(({ keys }) => keys.length > 0)
  const answers = keyed.length === 0 ? NONE : await claimKeys(tx, keyed, { ...terms, missing })
  const fresh = prepared.filter((item) => !answers.has(item))
  const lost = missing.size === 0 ? undefined : fresh.find((item) => missing.has(item))
  if (lost) throw missingOf(lost)
  terms.admit(fresh)
  if (answers.size > 0) await withdrawPayloads(tx, [...answers.keys()])
  const isThere = terms.links !== null && (await link(tx, prepared, terms.links, { answers, fresh, terms }))
  if (!isThere) await putAll(tx, fresh, now, terms.sending)
  return prepared.map((item) => {
    const answer = answers.get(item) ?? null
    return { answer, created: answer === null ? createdOf(item) : answeredBy(answer) }
  })
}

/** True: all of it was committed before, with everything that it wrote, and its answer was lost. */
async function link(
  tx: Queryable,
  prepared: readonly Prepared[],
  links: CallLinks,
  { answers, fresh, terms }: { answers: ReadonlyMap<Prepared, KeyAnswer>; fresh: readonly Prepared[]; terms: PutTerms },
): Promise<boolean> {
  const [first] = fresh
  if (terms.isResent && first && (await findParents(tx, [first.job.jobId])).size > 0) return true
  const idOf = (item: Prepared) => answers.get(item)?.jobId ?? null
  if (links.batch !== null && first === undefined) {
    const repeated = [...answers.values()].filter(({ isRepeated }) => isRepeated).map(({ jobId }) => jobId)
    const total = new Set(prepared.filter((item) => !closesBatch(item)).map(idOf)).size
    const known = await batchOfCall(tx, repeated, { name: links.batch.name, total })
    if (known !== null) {
      // The same call was made before: it is answered with its batch.
      links.batch.id = known
      return true
    }
  }
  if (await linkJobs(tx, prepared, links, { idOf, now: terms.now, sending: terms.sending })) terms.onTold()
  return false
}

const NONE: ReadonlyMap<Prepared, KeyAnswer> = new Map()

function answeredBy({ jobId, replacement }: Answer): Created {
  if (replacement === undefined) return { jobId, deduplicated: true, nextRunAt: null }
  return { jobId, deduplicated: true, replaced: true, nextRunAt: new Date(replacement.nominalAt) }
}
