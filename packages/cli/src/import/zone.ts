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

function zone(name: string) {
  try {
    return zoneOf(name)
  } catch (error) {
    if (error instanceof BelfryError) throw new NotTaken(error.message)
    throw error
  }
}

export const hasClockChanges = (zoneName: string): boolean => zoneName !== 'UTC'
