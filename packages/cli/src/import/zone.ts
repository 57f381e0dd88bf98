import { BelfryError, zoneOf } from '@belfry/engine'
import { NotTaken } from './entry.ts'

/** The zone by its one spelling; an unknown one concerns the entry that names it. */
export function readZone(name: string): string {
  return zone(name).name
}

/** `2026-11-01T09:00:00` on the clocks of a zone, as an instant. */
export function instantOfLocal(local: string, zoneName: string): Date {
  return new Date(zone(zoneName).instantOf(Date.parse(`${local}Z`)))
}

/** What a node makes of a local time that the clocks skip, or that comes twice; nothing for all others. */
export function clockChangesAt(local: string, zoneName: string): string[] {
  const clocks = zone(zoneName)
  const wanted = Date.parse(`${local}Z`)
  const at = clocks.instantOf(wanted)
  const shown = new Date(clocks.localOf(at)).toISOString().slice(0, 19)
  if (clocks.localOf(at) !== wanted)
    return [`the clocks of ${zoneName} skip ${local}: it runs right after the gap, at ${shown}`]
  const { until, offset, offsetAfter } = clocks.stretchAt(at)
  const isRepeated = offsetAfter < offset && at + offset - offsetAfter >= until
  return isRepeated ? [`${local} comes twice in ${zoneName}: it runs the first time`] : []
}

function zone(name: string) {
  try {
    return zoneOf(name)
  } catch (error) {
    if (error instanceof BelfryError) throw new NotTaken(error.message)
    throw error
  }
}

export const hasClockChanges = (zoneName: string): boolean => zoneName !== 'UTC'
