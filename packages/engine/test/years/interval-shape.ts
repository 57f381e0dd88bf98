import type { Instant } from '../../src/runtime/clock.ts'
import type { WallClock } from './wall-clock.ts'

const UNITS = { S: 1_000, M: 60_000, H: 3_600_000 } as const
const DAY = 86_400_000

export type IntervalShape =
  | { kind: 'elapsed'; unit: keyof typeof UNITS; count: number }
  | { kind: 'calendar'; unit: 'D' | 'W' | 'M'; count: number }

export const textOfInterval = ({ kind, unit, count }: IntervalShape): string =>
  kind === 'elapsed' ? `PT${count}${unit}` : `P${count}${unit}`

/** Every instant in [from, to), counted from the first one. */
export function timesOfInterval(
  shape: IntervalShape,
  wall: WallClock,
  { first, from, to }: { first: Instant; from: Instant; to: Instant },
): Instant[] {
  const times: Instant[] = []
  for (let n = 0; ; n++) {
    const at =
      shape.kind === 'elapsed' ? first + n * shape.count * UNITS[shape.unit] : onCalendar(shape, wall, first, n)
    if (at >= to) return times
    if (at >= from) times.push(at)
  }
}

/** The time of day stays; the 31st becomes the last day of a shorter month and comes back after it. */
function onCalendar({ unit, count }: IntervalShape, wall: WallClock, first: Instant, n: number): Instant {
  const start = new Date(wall.localOf(first))
  let local = start.getTime() + n * count * (unit === 'W' ? 7 : 1) * DAY
  if (unit === 'M') {
    const month = start.getUTCMonth() + n * count
    const last = new Date(Date.UTC(start.getUTCFullYear(), month + 1, 0)).getUTCDate()
    const date = Date.UTC(start.getUTCFullYear(), month, Math.min(start.getUTCDate(), last))
    local = date + (start.getTime() % DAY)
  }
  return wall.instantsOf(local)[0] ?? wall.afterGap(local)
}
