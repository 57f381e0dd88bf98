import { deleteDeadLetter } from './attempts/dead-letters.sql.ts'
import { checkedOptions, invalidArgument } from './call-options.ts'
import { BelfryError } from './errors.ts'
import { parseRunId } from './job/ids.ts'
import {
  type DeadLetterView,
  getDeadLetter,
  type ListDeadLetters,
  listDeadLetters,
} from './lookup/list-dead-letters.sql.ts'
import { OfScope } from './scope.ts'
import type { Page } from './store/page.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'
import { jobRow } from './timers/lock-timer.sql.ts'

export type DeadLetterFilter = Omit<ListDeadLetters, 'tenantId' | 'limit' | 'cursor'>

export interface Redrive {
  /** Exactly one of the two. An empty filter means all. */
  runIds?: readonly string[]
  filter?: DeadLetterFilter
  /** Runs per second: they become due one after the other, the oldest first, instead of all at once. */
  rate?: number
  /** Only says which ones it would be. */
  dryRun?: boolean
}

/** What one call opens again at most; whoever has more calls again. */
const MAX_REDRIVEN = 1_000
/** Pages of a filter that one call looks at. */
const MAX_PAGES = 20
const AT_ONCE = 4
/** Somebody else was quicker, or another job has its unique key: such a letter stays as it is. */
const LEFT_ALONE = new Set(['not_retryable', 'not_found', 'in_progress', 'unique_conflict'])
const MIN_RATE = 0.01
const MAX_RATE = 1_000
const FILTERS = ['queue', 'failureClass', 'jobId', 'from', 'to'] as const

/** A tenant's dead letters. */
export class TenantDeadLetters extends OfScope<TenantScope> {
  /** Latest first, a page at a time. */
  async list(filter: Omit<ListDeadLetters, 'tenantId'> = {}): Promise<Page<DeadLetterView>> {
    const { tenantId } = this.scope.caller
    return this.scope.page((db) => listDeadLetters(db, { ...filter, tenantId }))
  }

  async get(runId: string): Promise<DeadLetterView> {
    const { fresh, caller } = this.scope
    const found = await getDeadLetter(fresh, caller.tenantId, runId)
    if (found === null) throw noSuch('dead letter', runId)
    return found
  }

  /** Opens up to a thousand runs again; answers which. */
  async redrive(what: Redrive): Promise<{ count: number; runIds: string[] }> {
    const { runIds, filter, rate, dryRun = false } = checkedOptions(what, ['runIds', 'filter', 'rate', 'dryRun'])
    if (rate !== undefined && !(typeof rate === 'number' && rate >= MIN_RATE && rate <= MAX_RATE))
      throw invalidArgument('rate', `must be runs per second, from ${MIN_RATE} to ${MAX_RATE}`)
    if ((runIds === undefined) === (filter === undefined))
      throw invalidArgument('runIds', 'give either runIds or filter')
    const chosen = runIds === undefined ? await this.#matching(filter ?? {}) : await this.#existing(runIds)
    const opened = dryRun ? chosen : rate === undefined ? await this.#reopen(chosen) : await this.#space(chosen, rate)
    return { count: opened.length, runIds: opened }
  }

  /** Its history stays. */
  async delete(runId: string): Promise<void> {
    const { engine, tenantId } = this.scope
    const run = parseRunId(runId)
    const isGone =
      run !== null &&
      (await engine.db.callers.transactionOn([jobRow(run.jobId)], async (tx) => {
        if (!(await deleteDeadLetter(tx, tenantId, run))) return false
        await this.scope.record(tx, { subject: 'run', subjectId: runId, action: 'delete_dead_letter' })
        return true
      }))
    if (!isGone) throw noSuch('dead letter', runId)
  }

  async #matching(filter: DeadLetterFilter): Promise<string[]> {
    const { fresh, caller } = this.scope
    checkedOptions(filter, FILTERS)
    const found: string[] = []
    let cursor: string | null = null
    for (let page = 0; page < MAX_PAGES && found.length < MAX_REDRIVEN; page++) {
      const limit = MAX_REDRIVEN - found.length
      const from = cursor === null ? {} : { cursor }
      const { items, nextCursor }: Page<DeadLetterView> = await listDeadLetters(fresh, {
        ...filter,
        ...from,
        limit,
        tenantId: caller.tenantId,
      })
      found.push(...items.map(({ runId }) => runId))
      if (nextCursor === null) break
      cursor = nextCursor
    }
    return found
  }

  async #existing(runIds: readonly string[]): Promise<string[]> {
    if (!Array.isArray(runIds) || runIds.length > MAX_REDRIVEN)
      throw invalidArgument('runIds', `must be a list of at most ${MAX_REDRIVEN} run ids`)
    const { fresh, caller } = this.scope
    const known = await inParallel([...new Set<string>(runIds)], async (runId) =>
      (await getDeadLetter(fresh, caller.tenantId, runId)) === null ? null : runId,
    )
    return known.filter((runId) => runId !== null)
  }

  #reopen(runIds: readonly string[]): Promise<string[]> {
    const { engine, caller } = this.scope
    return openEach(runIds, (runId) => engine.bulkChanges.retry(runId, caller.actor))
  }

  /** One whose letter is left alone leaves its place empty: the rate is never passed. */
  #space(runIds: readonly string[], rate: number): Promise<string[]> {
    const { engine, caller } = this.scope
    const now = engine.clock.now()
    const oldestFirst = [...runIds].sort((a, b) => nominalOf(a) - nominalOf(b))
    return openEach(oldestFirst, (runId, place) =>
      engine.bulkChanges.retry(runId, caller.actor, now + Math.floor((place * 1_000) / rate)),
    )
  }
}

const nominalOf = (runId: string): number => parseRunId(runId)?.nominalAt ?? 0

/** Answers those that were opened. */
async function openEach(
  runIds: readonly string[],
  open: (runId: string, place: number) => Promise<unknown>,
): Promise<string[]> {
  const opened = await inParallel(runIds, async (runId, place) => {
    try {
      await open(runId, place)
      return runId
    } catch (error) {
      if (error instanceof BelfryError && LEFT_ALONE.has(error.code)) return null
      throw error
    }
  })
  return opened.filter((runId) => runId !== null)
}

/** A few at a time, in order. */
async function inParallel<Item, Result>(
  items: readonly Item[],
  work: (item: Item, place: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let i = 0; i < items.length; i += AT_ONCE)
    results.push(...(await Promise.all(items.slice(i, i + AT_ONCE).map((item, k) => work(item, i + k)))))
  return results
}
