import type { Definition } from '../job/definition.ts'
import { retryDecision } from '../job/retry.ts'
import { type FailureClass, nameOf, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Definitions } from '../leases/definitions.sql.ts'
import { LEASED_RUN } from '../leases/lease-row.ts'
import type { Turns } from '../ready/turn.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Random } from '../runtime/random.ts'
import type { PulseAnswer } from '../shards/pulse.sql.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Ended, GoesOn } from './finish.sql.ts'
import type { Finisher } from './finisher.ts'

const EXPIRED = columns({
  ...LEASED_RUN,
  cancelRequested: column<boolean>('r.cancel_requested'),
  priority: column<number>('r.priority'),
  delivery: column<number>('r.delivery'),
  begunAt: column<Instant | null>('r.begun_at'),
  /** A target that reports the end later: no process holds the attempt. */
  statusCode: column<number | null>('r.status_code'),
})
type Expired = Read<typeof EXPIRED>
const FIND = statement(
  'expired_leases',
  `select ${EXPIRED.text}
   from belfry.runs r
   where r.state = ${RUN_STATE.leased} and r.lease_until <= to_timestamp($2::float8 / 1000) and r.shard = any($1::smallint[])
   order by r.lease_until limit $3`,
)

const MAX_BATCH = 2_000
/** The pulse says when there is something to reap. */
const LOOK_EVERY_MS = 1_000
/** For one call: the rest is for the next pulse. */
const MAX_BATCHES = 10

type Reaped = Ended | GoesOn

/** As the log counts it. */
function endOf({ kind, outcome }: Reaped): string {
  if (kind === 'ended') return nameOf(OUTCOME, outcome) ?? 'ended'
  return outcome === OUTCOME.released ? 'neverBegun' : 'again'
}

interface ReaperDeps {
  db: Database
  logger: Logger
  finisher: Finisher
  definitions: Definitions
  turns: Turns
  wakeups: Wakeups
  random: Random
}

/**
 * The only closer by time. It compares with the database's own clock, closes nothing while there is grace after an outage,
 * and names the expiry that it saw, so that a lease renewed meanwhile stays live.
 */
export class Reaper implements Step {
  readonly name = 'reaper'
  readonly role = 'promoter'
  readonly #deps: ReaperDeps
  #toReap: { shards: readonly number[]; databaseNow: Instant } | null = null

  constructor(deps: ReaperDeps) {
    this.#deps = deps
  }

  saw({ hasExpired, graceUntil, now }: PulseAnswer, { shards }: { shards: readonly number[] }): boolean {
    const isInGrace = graceUntil !== null && now < graceUntil
    if (!hasExpired || isInGrace) return false
    this.#toReap = { shards, databaseNow: now }
    return true
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const asked = this.#toReap
    this.#toReap = null
    if (asked !== null) await this.reap(asked.shards, asked.databaseNow)
    return { waitMs: LOOK_EVERY_MS }
  }

  /** Closes the expired leases of these shards, a bounded number at a time; answers how many. */
  async reap(shards: readonly number[], databaseNow: Instant): Promise<number> {
    let closed = 0
    const byEnd: Record<string, number> = {}
    for (let i = 0; i < MAX_BATCHES; i++) {
      const { found, ended } = await this.#reapBatch(shards, databaseNow)
      closed += ended.length
      for (const finish of ended) byEnd[endOf(finish)] = (byEnd[endOf(finish)] ?? 0) + 1
      // What could not be closed was renewed, or is locked: it must not keep this going.
      if (found < MAX_BATCH || ended.length === 0) break
    }
    if (closed > 0)
      this.#deps.logger.warn('leases expired: their holders did not renew them', { leases: closed, ...byEnd })
    return closed
  }

  async #reapBatch(shards: readonly number[], databaseNow: Instant): Promise<{ found: number; ended: Reaped[] }> {
    const { db, definitions, finisher, wakeups } = this.#deps
    const rows = await db.query<RowOf<Expired>>(FIND, [shards, databaseNow, MAX_BATCH])
    if (rows.length === 0) return { found: 0, ended: [] }
    const leases = rows.map((row) => EXPIRED.read(row))
    const known = await definitions.of(leases)
    const finishes = await Promise.all(
      leases.map(async (lease) => {
        const finish = this.#judge(lease, known.get(lease.jobId), databaseNow)
        if ((await finisher.finished(finish)) !== 'ok') return []
        if (finish.kind === 'goes_on') {
          if (finish.turn === null) wakeups.waiting(lease.shard, finish.nextDueAt)
          else wakeups.ready({ ...lease, turn: finish.turn })
        }
        return [finish]
      }),
    )
    return { found: rows.length, ended: finishes.flat() }
  }

  #judge(lease: Expired, definitionJson: string | undefined, now: Instant): Reaped {
    const { shard, jobId, nominalAt, attempt, holder, queueId, limitKey, leaseUntil, failures, priority } = lease
    const common = {
      fence: { shard, jobId, nominalAt, attempt, holder, queueId, limitKey, definition: definitionJson ?? null },
      startedAt: lease.begunAt,
      finishedAt: now,
      leaseUntil,
      statusCode: lease.statusCode,
    } as const
    if (lease.cancelRequested) {
      return {
        ...common,
        kind: 'ended',
        outcome: OUTCOME.canceled,
        failureClass: 'canceled',
        error: 'canceled; the worker did not confirm it in time',
        result: null,
      }
    }
    // A process that holds an attempt ends it itself when its time is up. One that did not renew is gone.
    const isTimeout = lease.statusCode !== null
    const failureClass: FailureClass = isTimeout ? 'timeout' : 'lease_expired'
    const error = isTimeout ? 'the target did not call back within the timeout' : 'the worker did not renew its lease'
    const definition = definitionJson === undefined ? undefined : (JSON.parse(definitionJson) as Definition)
    const agesFrom = lease.isBackfill ? now : nominalAt
    const decision = retryDecision(definition?.retry, { failures: failures + 1, agesFrom, now }, this.#deps.random)
    const isLast = lease.atMostOnce || !decision.retry
    const readyNow = { nextDueAt: now, turn: this.#deps.turns.again(now, { queueId, priority }) }
    if (isLast && lease.begunAt === null) {
      const why = { outcome: OUTCOME.released, failureClass, error: 'its holder was gone before the attempt began' }
      return { ...common, kind: 'goes_on', ...why, counted: false, ...readyNow }
    }
    if (isLast) {
      const outcome = lease.atMostOnce ? OUTCOME.lost : OUTCOME.failed
      return { ...common, kind: 'ended', outcome, failureClass, error, result: null }
    }
    // A worker that died says nothing about the work: the run is ready at once, without backoff.
    const again = isTimeout ? { nextDueAt: now + decision.delayMs, turn: null } : readyNow
    return { ...common, kind: 'goes_on', outcome: OUTCOME.failed, failureClass, error, counted: true, ...again }
  }
}
