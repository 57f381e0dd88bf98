import type { Instant } from '../runtime/clock.ts'
import { setLast } from '../runtime/maps.ts'
import { fireTimesIn, type Schedule } from '../schedule/schedule.ts'
import type { Queryable } from '../store/database.ts'
import type { LockedTimer } from '../timers/lock-timer.sql.ts'
import type { Backfill } from './backfill.ts'
import { backfilledTimes, takenTimes } from './taken-times.sql.ts'

/** Times looked at besides those that become runs: where most have a run already, so many are passed over in one go. */
const AHEAD = 100
const MAX_REMEMBERED = 1_000

export interface Ahead {
  /** The next times of the backfill from its position on, oldest first. */
  times: Instant[]
  /** Those of them that have or had a run. */
  taken: ReadonlySet<Instant>
  /** No time of the backfill comes after them. */
  isRest: boolean
}

interface Remembered extends Ahead {
  from: Instant
  job: string
}

/**
 * What comes next in each backfill. Looking for traces of runs goes through every day since, while the job is held; so it is
 * done for many times at once, and remembered. A time that had no trace and is past for the schedule can only get a run from
 * another backfill, and that is looked up each time. A change of the job makes it look again.
 */
export class LookAhead {
  readonly #remembered = new Map<string, Remembered>()

  async next(tx: Queryable, schedule: Schedule, backfill: Backfill, timer: LockedTimer, room: number): Promise<Ahead> {
    const { id, position, to } = backfill
    const job = `${timer.jobVersion}.${timer.scheduleId}`
    const known = this.#remembered.get(id)
    if (known && known.job === job && known.from <= position) {
      const times = known.times.filter((at) => at >= position)
      if (times.length >= room || (times.length > 0 && known.isRest)) {
        const others = await backfilledTimes(tx, timer, times)
        return { times, taken: new Set([...known.taken, ...others]), isRest: known.isRest }
      }
    }
    const limit = room + AHEAD
    const times = fireTimesIn(schedule, position, to, limit)
    const found = { times, taken: await takenTimes(tx, timer, times), isRest: times.length < limit }
    // What the schedule has still to decide is looked at again when it has.
    const past = times.filter((at) => timer.nominalAt === null || at < timer.nominalAt)
    const isRest = found.isRest && past.length === times.length
    const ahead = { times: past, taken: found.taken, isRest, from: position, job }
    setLast(this.#remembered, id, ahead, MAX_REMEMBERED)
    return found
  }
}
