import type { Ended, Finish, GoesOn } from '../attempts/finish.sql.ts'
import { withPayload } from '../attempts/run-payloads.sql.ts'
import type { Definition } from '../job/definition.ts'
import { gateKeyOf } from '../job/gate-key.ts'
import { OUTCOME } from '../job/states.ts'
import type { Definitions } from '../leases/definitions.sql.ts'
import { agesFrom, type Lease } from '../leases/lease.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import type { Random } from '../runtime/random.ts'
import { PAUSE_KIND, type Paused, pauseError } from '../shards/paused.ts'

interface StartableDeps {
  clock: Clock
  logger: Logger
  definitions: Definitions
  stopping: AbortSignal
  random: Random
  paused: Paused
  end(finish: Finish): void
}

export type DefinedLease = Lease & { definition: string }

const RETRY_PAUSE_MS = 200

/** From leases that are durable to those that may be started. None is dropped: what cannot be started is ended here. */
export class Startable {
  readonly #deps: StartableDeps

  constructor(deps: StartableDeps) {
    this.#deps = deps
  }

  async of(leases: readonly Lease[]): Promise<DefinedLease[]> {
    const { clock, end } = this.#deps
    const unknown = leases.filter((lease) => lease.definition === null)
    if (unknown.length > 0 && !(await this.#define(unknown))) {
      // Stopping while the database is away: nothing is known of these, so they are given back, not judged.
      for (const lease of leases) end(releaseOf(lease, clock.now()))
      return []
    }
    const now = clock.now()
    return leases.filter((lease): lease is DefinedLease => {
      if (this.#deps.paused.hasTenant(lease.tenantId)) {
        end(this.#heldOf(lease, now))
        return false
      }
      if (lease.definition === null) {
        end(
          endOf(lease, now, { outcome: OUTCOME.canceled, failureClass: 'canceled', error: 'the job no longer exists' }),
        )
        return false
      }
      if (lease.ownPayload) lease.definition = withPayload(lease.definition, lease.ownPayload)
      // A run that is tried again has started; how old it may get then is for its retry policy.
      if (lease.attempt > 1 || !startsTooLate(lease.definition, agesFrom(lease), now)) return true
      const late = {
        outcome: OUTCOME.skipped,
        failureClass: 'start_deadline',
        error: 'not started by its deadline',
      } as const
      end(endOf(lease, now, late))
      return false
    })
  }

  /** Its tenant is paused: it waits aside, uncounted, so that it is in nobody's way. */
  #heldOf(lease: Lease, now: Instant): GoesOn {
    const { paused, random } = this.#deps
    const error = pauseError({ kind: PAUSE_KIND.tenant, name: '' })
    const gateKey = gateKeyOf('pause', lease.tenantId, '')
    return { ...releaseOf(lease, now), nextDueAt: paused.returnAt(now, random), error, gateKey }
  }

  async #define(leases: Lease[]): Promise<boolean> {
    const { definitions, stopping, logger } = this.#deps
    while (!stopping.aborted) {
      try {
        const found = await definitions.of(leases)
        for (const lease of leases) lease.definition = found.get(lease.jobId) ?? null
        return true
      } catch (error) {
        logger.debug('definitions cannot be read yet', { error })
        await pause(RETRY_PAUSE_MS)
      }
    }
    return false
  }
}

/** Most definitions have no start deadline, and are not parsed to find that out. */
function startsTooLate(definitionJson: string, since: Instant, now: Instant): boolean {
  if (!definitionJson.includes('"startDeadlineMs":')) return false
  const { startDeadlineMs } = JSON.parse(definitionJson) as Definition
  return startDeadlineMs !== undefined && now - since > startDeadlineMs
}

const endOf = (lease: Lease, now: Instant, how: Pick<Ended, 'outcome' | 'failureClass' | 'error'>): Ended => ({
  kind: 'ended',
  fence: lease,
  startedAt: null,
  finishedAt: now,
  statusCode: null,
  result: null,
  ...how,
})

/** Given back before it was started. */
export const releaseOf = (lease: Lease, now: Instant): GoesOn => ({
  kind: 'goes_on',
  fence: lease,
  startedAt: null,
  finishedAt: now,
  outcome: OUTCOME.released,
  failureClass: null,
  statusCode: null,
  error: null,
  counted: false,
  nextDueAt: now,
  turn: null,
})

/** Given back, unless somebody has renewed it since: then it is in use. */
export const unlessRenewed = (lease: Lease, now: Instant): GoesOn => ({
  ...releaseOf(lease, now),
  leaseUntil: lease.leaseUntil,
})
