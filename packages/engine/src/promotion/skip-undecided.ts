import type { SkipReason } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from '../schedule/schedule.ts'
import type { Queryable } from '../store/database.ts'
import type { LockedTimer } from '../timers/lock-timer.sql.ts'
import { countOf } from './decide.ts'
import { putSkips } from './put-skips.sql.ts'

/** Nominal times of a job that nobody decided and nobody will, from the one its timer waits for up to `until`: one range. */
export async function skipUndecided(
  tx: Queryable,
  timer: LockedTimer,
  schedule: Schedule,
  { reason, until, now }: { reason: SkipReason; until: Instant; now: Instant },
): Promise<void> {
  const from = timer.nominalAt
  if (from === null || from > until) return
  const count = countOf(schedule, from, until + 1)
  if (count !== 0) await putSkips(tx, timer, [{ from, to: until + 1, reason, count }], now)
}
