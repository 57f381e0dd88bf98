import type { Definition } from '../job/definition.ts'
import { retryDecision } from '../job/retry.ts'
import { CAUSE, type FailureClass, isOnce, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Definitions } from '../leases/definitions.sql.ts'
import type { Turns } from '../ready/turn.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Database } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Finish } from './finish.sql.ts'
import type { Finisher } from './finisher.ts'

const EXPIRED = statement(
  'expired_leases',
  `select r.shard, r.job_id, r.nominal_at, r.attempt, r.holder, r.job_version, r.failures, r.lease_until, r.deadline, r.cancel_requested, r.delivery,
     r.one_off, r.priority, r.queue_id, r.cause, r.limit_key
   from belfry.runs r
   where r.state = ${RUN_STATE.leased} and r.lease_until <= to_timestamp($2::float8 / 1000) and r.shard = any($1::smallint[])
   order by r.lease_until limit $3`,
)

type Row = [
  number,
  string,
  Instant,
  number,
  string,
  number,
  number,
  Instant,
  Instant,
  boolean,
  number,
  boolean,
  number,
  number,
  number,
  string | null,
]

const MAX_BATCH = 2_000
/** For one call: the rest is for the next pulse. */
const MAX_BATCHES = 10

/**
 * The only closer by time. It compares with the database's own clock, closes nothing while there is grace after an outage,
 * and names the expiry that it saw, so that a lease renewed meanwhile stays live.
 */
export class Reaper {
  readonly #deps: {
    db: Database
    finisher: Finisher
    definitions: Definitions
    turns: Turns
    wakeups: Wakeups
    random: Random
  }

  constructor(deps: {
    db: Database
    finisher: Finisher
    definitions: Definitions
    turns: Turns
    wakeups: Wakeups
    random: Random
  }) {
    this.#deps = deps
  }

  /** Closes the expired leases of these shards, a bounded number at a time; answers how many. */
  async reap(shards: readonly number[], databaseNow: Instant): Promise<number> {
    let closed = 0
    for (let i = 0; i < MAX_BATCHES; i++) {
      const { found, ended } = await this.#reapBatch(shards, databaseNow)
      closed += ended
      // What could not be closed is somebody else's, or locked: it must not keep this going.
      if (found < MAX_BATCH || ended === 0) break
    }
    return closed
  }

  async #reapBatch(shards: readonly number[], databaseNow: Instant): Promise<{ found: number; ended: number }> {
    const { db, definitions, finisher, wakeups } = this.#deps
    const rows = await db.query<Row>(EXPIRED, [shards, databaseNow, MAX_BATCH])
    if (rows.length === 0) return { found: 0, ended: 0 }
    const known = await definitions.of(
      rows.map((row) => ({ shard: row[0], jobId: row[1], jobVersion: row[5], oneOff: row[11] })),
    )
    const outcomes = await Promise.all(
      rows.map(async (row) => {
        const finish = this.#judge(row, known.get(row[1]), databaseNow)
        if ((await finisher.finished(finish)) !== 'ok') return 0
        if (finish.kind === 'goes_on') {
          if (finish.turn === null) wakeups.waiting(row[0], finish.nextDueAt)
          else wakeups.ready({ queueId: row[13], priority: row[12], delivery: row[10], turn: finish.turn })
        }
        return 1
      }),
    )
    return { found: rows.length, ended: outcomes.reduce<number>((sum, one) => sum + one, 0) }
  }

  #judge(row: Row, definitionJson: string | undefined, now: Instant): Finish {
    const [
      shard,
      jobId,
      nominalAt,
      attempt,
      holder,
      ,
      failures,
      leaseUntil,
      deadline,
      cancelRequested,
      delivery,
      ,
      priority,
      queueId,
      cause,
      limitKey,
    ] = row
    const common = {
      fence: { shard, jobId, nominalAt, attempt, holder, queueId, limitKey, definition: definitionJson ?? null },
      startedAt: null,
      finishedAt: now,
      leaseUntil,
      statusCode: null,
    } as const
    if (cancelRequested) {
      return {
        ...common,
        kind: 'ended',
        outcome: OUTCOME.canceled,
        failureClass: 'canceled',
        error: 'canceled; the worker did not confirm it in time',
        result: null,
      }
    }
    const timedOut = leaseUntil >= deadline
    const failureClass: FailureClass = timedOut ? 'timeout' : 'lease_expired'
    const error = timedOut ? 'the attempt took longer than its timeout' : 'the worker did not renew its lease'
    if (isOnce(delivery)) return { ...common, kind: 'ended', outcome: OUTCOME.lost, failureClass, error, result: null }
    const definition = definitionJson === undefined ? undefined : (JSON.parse(definitionJson) as Definition)
    const agesFrom = cause === CAUSE.backfill ? now : nominalAt
    const decision = retryDecision(definition?.retry, { failures: failures + 1, agesFrom, now }, this.#deps.random)
    if (!decision.retry) return { ...common, kind: 'ended', outcome: OUTCOME.failed, failureClass, error, result: null }
    // A worker that died says nothing about the work: the run is ready at once, without backoff.
    const again = timedOut
      ? { nextDueAt: now + decision.delayMs, turn: null }
      : { nextDueAt: now, turn: this.#deps.turns.again(now, { queueId, priority }) }
    return { ...common, kind: 'goes_on', outcome: OUTCOME.failed, failureClass, error, counted: true, ...again }
  }
}
