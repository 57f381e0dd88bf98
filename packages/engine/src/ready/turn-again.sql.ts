import type { ArrayValues } from '../store/arrays.ts'
import { DEFAULT_LEVEL, HEAD_START_US } from './virtual-time.ts'

/** Where queues are that are not at `now`. */
export interface Floors {
  queueIds: readonly number[]
  starts: readonly number[]
}

/**
 * The turn of runs `r`, of whatever queues, that are ready again: each stands where its queue is. They were charged when they were
 * ready for the first time, and are not charged again.
 */
export const turnAgain = (floors: { now: string; queueIds: string; starts: string }): string =>
  `coalesce((${floors.starts}::bigint[])[array_position(${floors.queueIds}::int[], r.queue_id)], (${floors.now}::float8 * 1000)::bigint)
       - (r.priority - ${DEFAULT_LEVEL}) * ${HEAD_START_US}::bigint`

export const floorsOf = ({ queueIds, starts }: Floors): [queueIds: ArrayValues, starts: ArrayValues] => [
  queueIds,
  starts,
]
