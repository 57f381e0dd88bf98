import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { TIMER } from './timer.ts'

/** What only the holder of the lock may rely on. */
const LOCKED = columns({
  ...TIMER,
  /** The last scheduled nominal time that became a run or a skip. Only rises. */
  decidedUntil: column<Instant | null>('t.decided_until'),
  lastTriggerAt: column<Instant | null>('t.last_trigger_at'),
  /** The limit that the job's runs share with others. */
  limitKey: column<string | null>('t.limit_key'),
  /** Other jobs wait for its runs. */
  hasDependents: column<boolean>('t.has_dependents'),
})
export type LockedTimer = Read<typeof LOCKED>

const LOCK = statement(
  'lock_timer',
  `select ${LOCKED.text} from belfry.timers t where t.shard = $1 and t.job_id = $2 for update`,
)
/** Whatever the clock of the writer says, what was decided stays decided. */
const WRITE = statement(
  'write_timer',
  `update belfry.timers t set version = t.version + 1, due_at = to_timestamp($3::float8 / 1000), nominal_at = to_timestamp($4::float8 / 1000),
     decided_until = greatest(t.decided_until, to_timestamp($5::float8 / 1000)), schedule_id = $6, job_version = $7, queue_id = $8, timeout_ms = $9, jitter_ms = $10,
     remaining_runs = $11, priority = $12, overlap = $13, delivery = $14, last_trigger_at = to_timestamp($15::float8 / 1000), fairness_key = $16,
     limit_key = $17, has_dependents = $18
   where t.shard = $1 and t.job_id = $2`,
)
const REMOVE = statement('remove_timer', 'delete from belfry.timers t where t.shard = $1 and t.job_id = $2')

/** The row of a job that its changes wait for, as those who would call it: its timer, or what defines it. */
export const jobRow = (jobId: string): string => `job ${jobId}`

/** When the timer of a job is due that is paused. */
export const NEVER_DUE = Number.POSITIVE_INFINITY

/** Takes the job's lock: no other transaction promotes, changes or triggers the job until this one ends. */
export async function lockTimer(tx: Queryable, shard: number, jobId: string): Promise<LockedTimer | null> {
  const [row] = await tx.query<RowOf<LockedTimer>>(LOCK, [shard, jobId])
  return row ? LOCKED.read(row) : null
}

/** Where a new rule takes over: now, but never before what is decided, whatever clock decided it. */
export const takesOverAt = ({ decidedUntil }: Pick<LockedTimer, 'decidedUntil'>, now: Instant): Instant =>
  Math.max(now, decidedUntil ?? now)

/** Writes the row and raises its version: a lock alone is not seen by a promotion that read before it. */
export async function writeTimer(tx: Queryable, timer: LockedTimer): Promise<void> {
  await tx.query(WRITE, [
    timer.shard,
    timer.jobId,
    timer.dueAt,
    timer.nominalAt,
    timer.decidedUntil,
    timer.scheduleId,
    timer.jobVersion,
    timer.queueId,
    timer.timeoutMs,
    timer.jitterMs,
    timer.remainingRuns,
    timer.priority,
    timer.overlap,
    timer.delivery,
    timer.lastTriggerAt,
    timer.fairnessKey,
    timer.limitKey,
    timer.hasDependents,
  ])
}

export async function removeTimer(tx: Queryable, shard: number, jobId: string): Promise<void> {
  await tx.query(REMOVE, [shard, jobId])
}
