import type { Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'

/** What can be paused besides queues and jobs, as it stands in `pauses.kind`. */
export const PAUSE_KIND = { tenant: 0, key: 1, origin: 2 } as const

/** Pauses of tenants and origins in the whole installation: each node is told of all of them every second. */
export const MAX_TOLD = 10_000

/** A pause as the pulse tells it. */
export interface PauseMark {
  id: string
  kind: number
  tenantId: number
  /** Of a key or an origin; empty for a tenant. */
  name: string
  /** It is over, but not all runs that it sent away may have been called back yet. */
  endedAt: Instant | null
}

/** Runs are called back when the pause ends; this is for those that are not. */
const LOOK_AGAIN_MS = 6 * 3_600_000

/** What is paused, as this node learnt it with its last pulse. Runs that have begun go on. */
export class Paused {
  #tenants: ReadonlySet<number> = new Set()
  #origins: ReadonlySet<string> = new Set()

  learn(pauses: readonly PauseMark[]): void {
    const live = pauses.filter(({ endedAt }) => endedAt === null)
    this.#tenants = new Set(live.filter(({ kind }) => kind === PAUSE_KIND.tenant).map(({ tenantId }) => tenantId))
    this.#origins = new Set(live.filter(({ kind }) => kind === PAUSE_KIND.origin).map(keyOf))
  }

  hasTenant(tenantId: number): boolean {
    return this.#tenants.size > 0 && this.#tenants.has(tenantId)
  }

  hasOrigin(tenantId: number, origin: string): boolean {
    return this.#origins.size > 0 && this.#origins.has(keyOf({ tenantId, name: origin }))
  }

  /** Until when a run that may not be started waits, unless it is called back before. */
  returnAt(now: Instant, random: Random): Instant {
    return Math.round(now + LOOK_AGAIN_MS * (0.5 + random.float() / 2))
  }
}

const keyOf = ({ tenantId, name }: Pick<PauseMark, 'tenantId' | 'name'>): string => `${tenantId} ${name}`

/** Why a run waits, for people. */
export const pauseError = ({ kind, name }: Pick<PauseMark, 'kind' | 'name'>): string =>
  kind === PAUSE_KIND.tenant ? 'the tenant is paused' : `calls to ${name} are paused`
