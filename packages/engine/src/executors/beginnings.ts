import type { Definition } from '../job/definition.ts'
import { DEFAULT_MAX_ATTEMPTS, mayRetry } from '../job/retry.ts'
import { beginAttempts } from '../leases/begin.sql.ts'
import { agesFrom, type Fence, type Lease } from '../leases/lease.ts'
import { LeaseWrites } from '../leases/lease-writes.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Vital } from '../store/database.ts'

interface BeginningsDeps {
  db: Vital
  clock: Clock
  logger: Logger
  stopping: AbortSignal
}

/** Hears when the work may begin; null: nothing may, since it could not be said. */
type Told = (at: Instant | null) => void

/** A live lease, as far as it is known. */
type Held = Fence & Pick<Lease, 'leaseUntil'>

interface Beginning {
  lease: Held
  told: Told
}

/** Two statements at once: a handler waits for its beginning. */
const LANES = 2

/**
 * Says in the row of a run that its work begins, before it does, where no further attempt may follow. If the lease of such an attempt
 * expires, the reaper knows by it whether the attempt may have done anything: without it the run is ready again, uncounted.
 */
export class Beginnings {
  readonly #writes: LeaseWrites<Beginning>

  constructor({ db, clock, logger, stopping }: BeginningsDeps) {
    this.#writes = new LeaseWrites({
      ...{ db, logger, lanes: LANES },
      write: (items) =>
        beginAttempts(
          db,
          items.map(({ lease }) => lease),
        ),
      settle: ({ told }, isSaid) => told(isSaid ? clock.now() : null),
      // A lease that has expired belongs to the reaper.
      isWorthIt: ({ lease }) => !stopping.aborted && lease.leaseUntil > clock.now(),
    })
  }

  /** Tells at once where nothing has to be said. */
  sayIfNeeded(lease: Lease, now: Instant, told: Told): void {
    if (mustBeSaid(lease, now)) this.say(lease, told)
    else told(now)
  }

  say(lease: Held, told: Told): void {
    this.#writes.push({ lease, told })
  }

  /** Ends when all that were to be said are. */
  drained(): Promise<void> {
    return this.#writes.drained()
  }

  /** Those of these attempts that may begin. */
  async sayAll<Item extends Held>(leases: readonly Item[]): Promise<Set<Item>> {
    const said = await Promise.all(leases.map((lease) => new Promise<Instant | null>((told) => this.say(lease, told))))
    return new Set(leases.filter((_, i) => said[i] !== null))
  }
}

/** It may be performed once only, or its failure would be the last. Most definitions have no policy of their own, and are not parsed. */
export function mustBeSaid(lease: Lease, now: Instant): boolean {
  if (lease.atMostOnce) return true
  const failures = lease.failures + 1
  if (!lease.definition?.includes('"retry":')) return failures >= DEFAULT_MAX_ATTEMPTS
  const { retry } = JSON.parse(lease.definition) as Definition
  return !mayRetry(retry, { failures, agesFrom: agesFrom(lease), now })
}
