import type { ResolvedSpec } from '../job/definition.ts'
import { Breather } from '../runtime/breather.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { type FireTimeText, localTimeOf } from '../schedule/local-time.ts'
import type { Schedule } from '../schedule/schedule.ts'

const TOO_FAR = 'there are no further times within 100 years'
const TOO_DEAR = 'these are not all: finding further times takes too long'

/**
 * The times of a schedule after an instant; the note says why there are fewer than asked for, unless the schedule is over. Whatever
 * the schedule, others have their turn meanwhile.
 */
export async function previewTimes(
  clock: Clock,
  { spec, schedule }: { spec: ResolvedSpec; schedule: Schedule },
  { after, until, count }: { after: Instant; until: Instant; count: number },
): Promise<{ times: FireTimeText[]; note: string | null }> {
  const times: FireTimeText[] = []
  const breather = new Breather(clock)
  let at = schedule.next(after)
  while (at !== null && times.length < count) {
    // The first one is always told.
    if (at > until && times.length > 0) return { times, note: TOO_FAR }
    times.push(localTimeOf(spec, at))
    if (times.length === count) break
    await breather.breathe()
    if (breather.isSpent) return { times, note: TOO_DEAR }
    at = schedule.next(at)
  }
  return { times, note: null }
}
