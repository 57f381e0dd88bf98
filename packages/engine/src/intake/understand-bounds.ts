import type { Complaints } from '../input/read-fields.ts'
import type { Instant } from '../runtime/clock.ts'
import { MAX_DURATION_MS } from '../schedule/duration.ts'
import { parseInstant } from '../schedule/instant.ts'
import { shown } from '../schedule/not-understood.ts'
import { zoneOf } from '../schedule/zone.ts'

/** An instant of this world: not before 1970, not more than 100 years ahead. */
export function readInstant(complaints: Complaints, path: string, value: unknown, now: Instant): Instant | undefined {
  const at = complaints.read(path, () => parseInstant(value))
  return at === undefined ? undefined : withinReach(complaints, path, at, now)
}

export function withinReach(complaints: Complaints, path: string, at: Instant, now: Instant): Instant | undefined {
  if (at > now + MAX_DURATION_MS) return complaints.add(path, 'lies more than 100 years ahead')
  return at < 0 ? complaints.add(path, 'lies before 1970') : at
}

export function readZone(complaints: Complaints, value: unknown): string {
  if (value === undefined) return 'UTC'
  if (typeof value !== 'string') {
    complaints.add('timezone', `must be a text such as "Europe/Berlin", not ${shown(value)}`)
    return 'UTC'
  }
  return complaints.read('timezone', () => zoneOf(value).name) ?? 'UTC'
}
