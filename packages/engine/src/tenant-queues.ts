import { type PurgePoint, purgeRuns } from './attempts/purge-runs.sql.ts'
import type { LimitsInput } from './concurrency/shared-limit-fields.ts'
import { queueLimitRef, removeLimit } from './concurrency/shared-limits.sql.ts'
import { BelfryError } from './errors.ts'
import { Complaints, readChoice, readWord } from './input/read-fields.ts'
import { withoutPauser, withPauser } from './intake/paused-by.ts'
import { QUEUE_KIND, type QueueKind } from './job/states.ts'
import { readReason } from './jobs.ts'
import { findQueue, getQueue, listQueues, type QueueKindName, type QueueView } from './lookup/queues.sql.ts'
import { OfScope } from './scope.ts'
import { MAX_TOLD } from './shards/paused.ts'
import { countSetQueues, isQueueInUse, lockQueue, type QueueRow, writeQueue } from './shards/queue-rows.sql.ts'
import { type QueueSettingsInput, readQueueSettings } from './shards/read-queue-settings.ts'
import type { Transaction } from './store/database.ts'
import type { Page, PageRequest } from './store/page.ts'
import { checkLimits, limitQueue } from './tenant-queue-limits.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'

const PURGE_BATCH = 1_000
const NOT_PAUSED = { pausedAt: null, pauseReason: null, pausedBy: null }

/** What is left out stays as it is. */
export type QueueInput = { kind?: QueueKindName } & LimitsInput & QueueSettingsInput

/**
 * A tenant's queues. A queue that all tenants share is shown, with the counts of one's own runs; only an operator may
 * change it.
 */
export class TenantQueues extends OfScope<TenantScope> {
  /** By name, a page at a time. */
  list(page: PageRequest = {}): Promise<Page<QueueView>> {
    const { fresh, caller, engine } = this.scope
    const { db: engineDb, clock } = engine
    return listQueues({ db: fresh, engineDb }, { ...page, tenantId: caller.tenantId, now: clock.now() })
  }

  async get(name: string): Promise<QueueView> {
    const { fresh, caller, engine } = this.scope
    const { db: engineDb, clock } = engine
    const found = await getQueue({ db: fresh, engineDb }, { tenantId: caller.tenantId, now: clock.now() }, name)
    if (found === null) throw noSuch('queue', name)
    return found
  }

  /** Makes the queue if there is none. Its kind is decided here or by its first use, and stays. Limits that are left out stay. */
  async put(name: string, options: QueueInput = {}): Promise<void> {
    const { engine, caller } = this.scope
    const { maxRunning, rateLimit } = options
    const complaints = new Complaints()
    readWord(complaints, 'queue', name)
    const kind = options.kind === undefined ? undefined : readKind(complaints, options.kind)
    checkLimits(complaints, options)
    const settings = readQueueSettings(complaints, options)
    if (complaints.list.length > 0) throw complaints.error('invalid_argument')
    if (kind !== undefined) await engine.registry.queueId(caller.tenantId, name, kind)
    else if ((await findQueue(this.scope.fresh, caller.tenantId, name)) === null)
      await engine.registry.nameQueue(caller.tenantId, name)
    if (maxRunning !== undefined || rateLimit !== undefined) await limitQueue(this.scope, name, options)
    if (Object.keys(settings).length === 0) return
    await this.#change(name, async (tx, queue) => {
      const next = { ...queue, ...settings }
      if (isSet(next) && !isSet(queue) && (await countSetQueues(tx, MAX_TOLD)) === MAX_TOLD)
        throw new BelfryError(
          'quota_exceeded',
          `an installation may have ${MAX_TOLD} queues with maxDepth, maxAge or jitter of their own`,
        )
      return isSame(next, queue) ? null : { action: 'set', queue: next }
    })
  }

  /** Nothing of the queue is started until it is resumed; what has begun goes on. Other nodes know within a second. */
  async pause(name: string, options: { reason?: string } = {}): Promise<void> {
    const { clock } = this.scope.engine
    const reason = readReason(options)
    await this.#change(name, async (_tx, queue) => {
      const { actor } = this.scope.caller
      if (queue.pausedAt === null)
        return { action: 'pause', queue: { ...queue, pausedAt: clock.now(), pauseReason: reason, pausedBy: actor } }
      const pausedBy = withPauser(queue.pausedBy, actor)
      if (pausedBy === queue.pausedBy) return null
      return { action: 'pause', queue: { ...queue, pausedBy, pauseReason: reason ?? queue.pauseReason } }
    })
  }

  async resume(name: string): Promise<void> {
    await this.#change(name, async (_tx, queue) => {
      if (queue.pausedAt === null) return null
      const pausedBy = this.#withoutMe(queue, name)
      return { action: 'resume', queue: pausedBy === null ? { ...queue, ...NOT_PAUSED } : { ...queue, pausedBy } }
    })
  }

  /** Cancels the runs that nobody performs yet, in batches; of a shared queue one's own. */
  async purge(name: string): Promise<{ purged: number }> {
    const { engine, caller, fresh } = this.scope
    const { clock, db } = engine
    const found = await findQueue(fresh, caller.tenantId, name)
    if (found === null) throw noSuch('queue', name)
    let purged = 0
    for (let after: PurgePoint | null | undefined; after !== null; ) {
      const batch = { tenantId: caller.tenantId, queueId: found.id, after: after ?? null, limit: PURGE_BATCH }
      const done = await db.bulk.transaction(async (tx) => {
        const result = await purgeRuns(tx, batch, clock.now())
        const after = { purged: result.purged }
        if (result.purged > 0)
          await this.scope.record(tx, { subject: 'queue', subjectId: name, action: 'purge', after })
        return result
      })
      for (const jobId of done.jobIds) engine.waking.jobs.look(jobId)
      if (done.hasTold) engine.wakeups.told()
      purged += done.purged
      after = done.next
    }
    return { purged }
  }

  /** Only a queue that nothing names any more; named again it is back, with nothing set. */
  async delete(name: string): Promise<void> {
    const { engine, caller } = this.scope
    await this.#change(name, async (tx, queue) => {
      if (await isQueueInUse(tx, caller.tenantId, queue.id))
        throw new BelfryError('not_empty', `the queue "${name}" still has runs, or jobs that name it`)
      this.#withoutMe(queue, name)
      await removeLimit(tx, queueLimitRef(queue.id, engine.shards))
      const fresh = { ...queue, kind: null, ...NOT_PAUSED, maxDepth: null, maxAgeMs: null, jitterMs: null }
      return { action: 'delete', queue: fresh, deletedAt: engine.clock.now() }
    })
  }

  /** Who still pauses it when the caller does not any more; throws if that is not for the caller to end. */
  #withoutMe({ pausedBy }: QueueRow, name: string): string | null {
    return withoutPauser(`the queue "${name}"`, pausedBy, this.scope.caller.actor)
  }

  async #change(
    name: string,
    work: (tx: Transaction, queue: QueueRow) => Promise<{ action: string; queue: QueueRow; deletedAt?: number } | null>,
  ): Promise<void> {
    const { engine, caller, fresh } = this.scope
    const known = await findQueue(fresh, caller.tenantId, name)
    if (known?.shared)
      throw new BelfryError('forbidden', `the queue "${name}" is shared by all tenants: only an operator may change it`)
    const isChanged = await engine.db.callers.transactionOn([`queue ${caller.tenantId} ${name}`], async (tx) => {
      const queue = known && (await lockQueue(tx, caller.tenantId, name))
      if (!queue) throw noSuch('queue', name)
      const next = await work(tx, queue)
      if (next === null) return false
      await writeQueue(tx, next.queue, next.deletedAt ?? null)
      const after = next.deletedAt === undefined ? shown(next.queue) : undefined
      const change = { subject: 'queue', subjectId: name, action: next.action, before: shown(queue), after } as const
      await this.scope.record(tx, change)
      return true
    })
    // What is done after this answer is done by a node that knows.
    if (isChanged) await engine.refresh()
  }
}

function readKind(complaints: Complaints, value: unknown): QueueKind | undefined {
  const kind = readChoice(complaints, 'kind', value, Object.keys(QUEUE_KIND) as QueueKindName[])
  return kind === undefined ? undefined : QUEUE_KIND[kind]
}

const shown = ({ kind, pausedAt, pauseReason, maxDepth, maxAgeMs, jitterMs }: QueueRow): unknown => ({
  kind,
  pausedAt: pausedAt === null ? null : new Date(pausedAt).toISOString(),
  pauseReason,
  maxDepth,
  maxAgeMs,
  jitterMs,
})

const isSet = ({ maxDepth, maxAgeMs, jitterMs }: QueueRow): boolean => (maxDepth ?? maxAgeMs ?? jitterMs) !== null

const isSame = (one: QueueRow, other: QueueRow): boolean => JSON.stringify(shown(one)) === JSON.stringify(shown(other))
