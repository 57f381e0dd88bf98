import { isRecord } from './input/read-fields.ts'
import { jitterOf } from './intake/jitter.ts'
import { CROWDED, isCrowdedSecond } from './lookup/forecast-crowded.sql.ts'
import type { TenantScope } from './tenant-scope.ts'

/** Something worth knowing about what was just made; it is made all the same. */
export interface Hint {
  code: 'crowded_second'
  message: string
  /** Fields of the job that would be better. */
  suggestion: Record<string, string>
}

const SPREAD = 'PT30S'
const SPREAD_MS = 30_000

/**
 * Whether a job that is due later begins in a second that a thousand others begin in too. Asked after the commit, and only of
 * single jobs; whatever goes wrong with it, the job is there.
 */
export async function hintsFor(
  { engine }: TenantScope,
  job: unknown,
  { jobId, nextRunAt, isRecurring }: { jobId: string; nextRunAt: Date | null; isRecurring: boolean },
): Promise<Hint[]> {
  const { clock, db, shards } = engine
  if (nextRunAt === null || nextRunAt.getTime() <= clock.now()) return []
  if (isRecord(job) && job.jitter !== undefined) return []
  const isCrowded = await isCrowdedSecond(db, shards, nextRunAt.getTime()).catch(() => false)
  if (!isCrowded) return []
  const second = `${nextRunAt.toISOString().slice(0, 19)}Z`
  const message = `about ${CROWDED} jobs or more are due in the same second, ${second}: those without jitter start one after the other`
  if (isRecurring) return [{ code: 'crowded_second', message, suggestion: { jitter: SPREAD } }]
  const later = new Date(nextRunAt.getTime() + jitterOf(jobId, SPREAD_MS))
  return [{ code: 'crowded_second', message, suggestion: { runAt: later.toISOString() } }]
}
