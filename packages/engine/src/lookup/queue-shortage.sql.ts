import { countLeased } from '../attempts/queue-slots.sql.ts'
import { gcra } from '../concurrency/gcra.ts'
import { readQueueLimit } from '../concurrency/shared-limits.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { rateInWords } from './in-words.ts'

/** Why nothing of the queue is started just now because of its limits, in words; null: they would let something through. */
export async function queueShortage(db: Queryable, queueId: number, now: Instant): Promise<string | null> {
  const limit = await readQueueLimit(db, queueId)
  if (limit === null) return null
  const { maxRunning, hasOlder, rate, rateAt } = limit
  if (maxRunning !== null && (await countLeased(db, queueId, { maxRunning, hasOlder })) >= maxRunning)
    return `is limited to ${maxRunning} ${maxRunning === 1 ? 'run' : 'runs'} at a time, and so many are under way`
  if (rate === null || gcra(rateAt, rate, now, 1).allowed > 0) return null
  return `starts at most ${rateInWords(rate)}, and has done so`
}
