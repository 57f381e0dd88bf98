import type { ResolvedSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { zoneOf } from './zone.ts'

export interface FireTimeText {
  utc: string
  /** The clock on the wall of the schedule's zone, with its offset from UTC. */
  local: string
  /** `gap`: the clocks skip the time that it was meant for. `repeat`: the same time comes twice. */
  dst?: 'gap' | 'repeat'
}

export function localTimeOf(spec: ResolvedSpec, at: Instant): FireTimeText {
  const local = zoneOf(spec.timezone).localOf(at)
  const minutes = Math.round((local - at) / 60_000)
  const sign = minutes < 0 ? '-' : '+'
  const offset = Math.abs(minutes)
  const digits = (value: number) => String(value).padStart(2, '0')
  return {
    utc: plain(at),
    local: `${plain(local).slice(0, -1)}${sign}${digits(Math.floor(offset / 60))}:${digits(offset % 60)}`,
  }
}

function plain(at: Instant): string {
  return new Date(at).toISOString().replace('.000Z', 'Z')
}
