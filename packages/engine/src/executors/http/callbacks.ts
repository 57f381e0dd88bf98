import { type Finish, lookAtAttempts } from '../../attempts/finish.sql.ts'
import type { Finisher } from '../../attempts/finisher.ts'
import { BelfryError } from '../../errors.ts'
import type { Definition } from '../../job/definition.ts'
import { retryDecision } from '../../job/retry.ts'
import { OUTCOME } from '../../job/states.ts'
import { ACCEPTED, type AwaitedCallback, awaitCallbacks } from '../../leases/await-callback.sql.ts'
import type { Definitions } from '../../leases/definitions.sql.ts'
import { agesFrom, type Fence, type Lease } from '../../leases/lease.ts'
import { LeaseWrites } from '../../leases/lease-writes.ts'
import { leaseKey, readLeases } from '../../leases/read-leases.sql.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Random } from '../../runtime/random.ts'
import type { Wakeups } from '../../shards/wakeups.sql.ts'
import type { Vital } from '../../store/database.ts'
import { clean, resultJson } from '../handlers/judge.ts'
import { CallbackTokens } from './callback-token.ts'

/** What a target says by its callback. */
export interface CallbackBody {
  status: 'succeeded' | 'failed'
  result?: unknown
  error?: string
}

export type CallbackOutcome = 'ok' | 'lease_lost' | 'unknown_token'

interface CallbacksDeps {
  db: Vital
  clock: Clock
  random: Random
  logger: Logger
  finisher: Finisher
  definitions: Definitions
  wakeups: Wakeups
  vaultKey: Uint8Array
  stopping: AbortSignal
}

interface Waiting extends AwaitedCallback {
  lease: Lease
  settle(): void
}

/**
 * Runs whose target said that it will report the end later. Their lease lasts until the deadline and no node holds them:
 * whichever is called ends them by their fence, and past the deadline the reaper does.
 */
export class Callbacks {
  readonly #deps: CallbacksDeps
  readonly #tokens: CallbackTokens
  readonly #waits: LeaseWrites<Waiting>

  constructor(deps: CallbacksDeps) {
    this.#deps = deps
    this.#tokens = new CallbackTokens(deps.vaultKey)
    const { db, logger, stopping } = deps
    this.#waits = new LeaseWrites({
      ...{ db, logger, lanes: 1 },
      write: (items) => awaitCallbacks(db, items),
      settle: ({ settle }) => settle(),
      // Until it is said the keeper's heartbeats, and the grace after an outage, keep the lease.
      isWorthIt: () => !stopping.aborted,
    })
  }

  tokenOf(runId: string, fence: Fence): string {
    return this.#tokens.sign(runId, fence)
  }

  /** Ends when the lease lasts until its deadline, or is no longer this node's: either way it is done with it. */
  waitFor(lease: Lease, begunAt: Instant): Promise<void> {
    return new Promise((settle) => this.#waits.push({ lease, begunAt, settle }))
  }

  /** Saying the same again is harmless. */
  async complete(token: string, body: CallbackBody): Promise<CallbackOutcome> {
    if (body.status !== 'succeeded' && body.status !== 'failed') {
      throw new BelfryError('invalid_argument', 'status: must be succeeded or failed', {
        complaints: [{ path: 'status', message: 'must be succeeded or failed' }],
      })
    }
    const { db, finisher, wakeups } = this.#deps
    const fence = this.#tokens.read(token)
    if (!fence) return 'unknown_token'
    finisher.mustNotBeBehind()
    const lease = (await readLeases(db, [fence])).get(leaseKey(fence))
    if (!lease) {
      const known = await lookAtAttempts(db, [this.#end(fence, null, body)])
      return known.size > 0 ? 'ok' : 'lease_lost'
    }
    const finish = body.status === 'succeeded' ? this.#end(fence, lease, body) : await this.#failure(fence, lease, body)
    const outcome = await finisher.finished(finish)
    if (outcome === 'ok' && finish.kind === 'goes_on') wakeups.waiting(fence.shard, finish.nextDueAt)
    return outcome
  }

  /** The end of the run, whatever the retry policy says. */
  #end(fence: Fence, lease: Lease | null, body: CallbackBody): Finish {
    const hasSucceeded = body.status === 'succeeded'
    return {
      kind: 'ended',
      fence,
      startedAt: lease?.leasedAt ?? null,
      finishedAt: this.#deps.clock.now(),
      outcome: hasSucceeded ? OUTCOME.succeeded : OUTCOME.failed,
      failureClass: hasSucceeded ? null : 'handler_error',
      statusCode: ACCEPTED,
      error: hasSucceeded ? null : errorOf(body),
      result: resultJson(body.result),
    }
  }

  async #failure(fence: Fence, lease: Lease, body: CallbackBody): Promise<Finish> {
    const { clock, random, definitions } = this.#deps
    const { jobVersion, oneOff } = lease
    const found = await definitions.of([{ shard: fence.shard, jobId: fence.jobId, jobVersion, oneOff }])
    const json = found.get(fence.jobId)
    const { retry } = json === undefined ? {} : (JSON.parse(json) as Definition)
    const now = clock.now()
    const decision = retryDecision(retry, { failures: lease.failures + 1, agesFrom: agesFrom(lease), now }, random)
    if (!decision.retry) return this.#end(fence, lease, body)
    return {
      kind: 'goes_on',
      fence,
      startedAt: lease.leasedAt,
      finishedAt: now,
      outcome: OUTCOME.failed,
      failureClass: 'handler_error',
      statusCode: ACCEPTED,
      error: errorOf(body),
      counted: true,
      nextDueAt: now + decision.delayMs,
      turn: null,
    }
  }
}

const errorOf = ({ error }: CallbackBody): string =>
  clean(typeof error === 'string' && error !== '' ? error : 'the target reported a failure')
