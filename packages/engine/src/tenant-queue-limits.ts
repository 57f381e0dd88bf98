import { openWhenKnown, UNAWARE_MS } from './concurrency/await-unaware.sql.ts'
import { isLimited, type LimitsInput, limitsView, NO_LIMITS, readLimits } from './concurrency/shared-limit-fields.ts'
import { limitRow, putLimit, queueLimitRef, readQueueLimits, removeLimit } from './concurrency/shared-limits.sql.ts'
import { BelfryError } from './errors.ts'
import { Complaints } from './input/read-fields.ts'
import { findQueue } from './lookup/queues.sql.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'

/** Whose limits those of shared queues are. */
const SYSTEM_TENANT = 0

/** Complains about limits before anything is changed. */
export function checkLimits(complaints: Complaints, input: LimitsInput): void {
  readLimits(complaints, input, NO_LIMITS)
}

/**
 * How many runs of a queue may be under way at a time, and how many may start in a period. It counts from the answer on, on
 * all nodes: what is under way by then stays, and nothing more is leased until there is room.
 */
export async function limitQueue(scope: TenantScope, name: string, input: LimitsInput): Promise<void> {
  const { engine, caller, fresh } = scope
  const { db, clock, shards } = engine
  const queue = await findQueue(fresh, caller.tenantId, name)
  if (queue === null) throw noSuch('queue', name)
  if (queue.shared && !caller.isInstallation)
    throw new BelfryError('forbidden', `the queue "${name}" is shared by all tenants: only an operator may limit it`)
  const tenantId = queue.shared ? SYSTEM_TENANT : caller.tenantId
  const ref = queueLimitRef(queue.id, shards)
  const isNew = await db.callers.transactionOn([limitRow(ref)], async (tx) => {
    const before = (await readQueueLimits(tx, [queue.id])).get(queue.id) ?? NO_LIMITS
    const complaints = new Complaints()
    const limits = readLimits(complaints, input, before)
    if (limits === undefined) throw complaints.error('invalid_argument')
    const [was, is] = [limitsView(before), limitsView(limits)]
    if (JSON.stringify(was) === JSON.stringify(is)) return false
    let isMade = false
    if (isLimited(limits))
      isMade = await putLimit(tx, ref, { ...limits, tenantId, name, usedAt: clock.now() + UNAWARE_MS })
    else await removeLimit(tx, ref)
    const change = { subject: 'queue', subjectId: name, action: 'limit', before: was, after: is } as const
    await scope.record(tx, change)
    return isMade
  })
  if (isNew) await openWhenKnown(db, clock, ref)
  // This node need not wait for its next pulse, and whoever waits for a slot need not either.
  await engine.refresh()
  engine.wakeups.freed(queue.id)
}
