import type { ResolvedSpec } from '../job/definition.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { yieldTurn } from '../runtime/yield-turn.ts'
import { type FireTimeText, localTimeOf } from '../schedule/local-time.ts'
import type { Schedule } from '../schedule/schedule.ts'

/** So long one preview reckons at a time, and in all. */
const SLICE_MS = 10
const BUDGET_MS = 1_000
/** A clock that stands still shall not keep others from their turn either. */
const SLICE_TIMES = 100

const TOO_FAR = 'there are no further times within 100 years'
const TOO_DEAR = 'these are not all: finding further times takes too long'

interface PreviewTimes {
  times: FireTimeText[]
  /** Why there are fewer than asked for, unless the schedule is over. */
  note: string | null
}

/** The times of a schedule after an instant. Whatever the schedule, others have their turn meanwhile. */
export async function previewTimes(
  clock: Clock,
  { spec, schedule }: { spec: ResolvedSpec; schedule: Schedule },
  { after, until, count }: { after: Instant; until: Instant; count: number },
): Promise<PreviewTimes> {
  const times: FireTimeText[] = []
  let spentMs = 0
  let sliceAt = clock.now()
  let at = schedule.next(after)
  while (at !== null && times.length < count) {
    // The first one is always told.
    if (at > until && times.length > 0) return { times, note: TOO_FAR }
    times.push(localTimeOf(spec, at))
    const sliceMs = clock.now() - sliceAt
    if (sliceMs >= SLICE_MS || times.length % SLICE_TIMES === 0) {
      spentMs += sliceMs
      if (spentMs >= BUDGET_MS && times.length < count) return { times, note: TOO_DEAR }
      await yieldTurn()
      sliceAt = clock.now()
    }
    if (times.length < count) at = schedule.next(at)
  }
  return { times, note: null }
}
