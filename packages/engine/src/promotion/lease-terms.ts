import type { Instant } from '../runtime/clock.ts'

/** A run is born ready (no holder), or already leased to an executor of this node that has room for it. */
export type LeaseTerms = { holder: null; deadline: null } | { holder: string; deadline: Instant }

export const BORN_READY: LeaseTerms = { holder: null, deadline: null }
