import { completeIn } from '../../attempts/complete-in.sql.ts'
import { BelfryError } from '../../errors.ts'
import { appendLogs, type LogLine } from '../../leases/attempt-logs.sql.ts'
import { readCheckpoint, saveCheckpoint } from '../../leases/checkpoints.sql.ts'
import { lookAtLeases, renewLeases } from '../../leases/heartbeat.sql.ts'
import type { Receipts } from '../../leases/receipts.sql.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import { Lanes } from '../../runtime/lanes.ts'
import type { Logger } from '../../runtime/logger.ts'
import { withoutNul } from '../../store/arrays.ts'
import { type CallerTransaction, type Database, inCallerTransaction } from '../../store/database.ts'
import type { ActiveRun, LogLevel, RunServices } from './active-run.ts'
import { resultJson } from './judge.ts'

const MAX_CHECKPOINT_BYTES = 65_536
const MAX_LINES = 1_000
const MAX_MESSAGE_CHARACTERS = 8_192

interface RunSupportDeps {
  db: Database
  clock: Clock
  logger: Logger
  receipts: Receipts
  leaseMs: number
}

/** What a run may ask of the engine while its handler performs it. Every write names the attempt's fence. */
export class RunSupport implements RunServices {
  readonly #deps: RunSupportDeps
  readonly #logs: Lanes<LogLine>
  readonly #lines = new WeakMap<ActiveRun, number>()

  constructor(deps: RunSupportDeps) {
    this.#deps = deps
    this.#logs = new Lanes({
      lanes: 1,
      maxBatch: 500,
      work: (lines) =>
        appendLogs(deps.db, lines).catch((error: unknown) =>
          deps.logger.warn('log lines of attempts were lost', { error, lines: lines.length }),
        ),
    })
  }

  now(): Instant {
    return this.#deps.clock.now()
  }

  async renew(run: ActiveRun): Promise<void> {
    const { db, clock, receipts, leaseMs } = this.#deps
    await receipts.makeRows([run.lease])
    let [held] = await renewLeases(db, [run.lease], clock.now() + leaseMs)
    held ??= (await lookAtLeases(db, [run.lease]))[0]
    if (!held) {
      run.abort('lease_lost')
      throw new BelfryError('lease_lost', `the lease of run ${run.id}, attempt ${run.attempt}, is no longer live`)
    }
    run.lease.leaseUntil = Math.min(clock.now() + leaseMs, run.lease.deadline)
    if (held.cancelRequested) run.abort('canceled')
  }

  readCheckpoint(run: ActiveRun): Promise<unknown> {
    return readCheckpoint(this.#deps.db, run.lease)
  }

  async saveCheckpoint(run: ActiveRun, value: unknown): Promise<void> {
    const json = JSON.stringify(value)
    if (json === undefined) throw new BelfryError('invalid_argument', 'a checkpoint must be a JSON value')
    if (Buffer.byteLength(json) > MAX_CHECKPOINT_BYTES) {
      throw new BelfryError('payload_too_large', `a checkpoint may have at most ${MAX_CHECKPOINT_BYTES} bytes as JSON`)
    }
    run.checkpointed = true
    await this.#deps.receipts.makeRows([run.lease])
    if ((await saveCheckpoint(this.#deps.db, run.lease, json)) === 'ok') return
    run.abort('lease_lost')
    throw new BelfryError('lease_lost', `the lease of run ${run.id}, attempt ${run.attempt}, is no longer live`)
  }

  log(run: ActiveRun, level: LogLevel, message: string): void {
    const line = (this.#lines.get(run) ?? 0) + 1
    if (line > MAX_LINES) return
    this.#lines.set(run, line)
    const { shard, jobId, nominalAt, attempt } = run.lease
    const text = line === MAX_LINES ? 'further lines of this attempt are left out' : message
    this.#logs.push({
      shard,
      jobId,
      nominalAt,
      attempt,
      line,
      level,
      loggedAt: this.now(),
      message: withoutNul(String(text).slice(0, MAX_MESSAGE_CHARACTERS)).toWellFormed(),
    })
  }

  async completeIn(run: ActiveRun, caller: CallerTransaction, result: unknown): Promise<void> {
    run.completesItself = true
    await this.#deps.receipts.makeRows([run.lease])
    const tx = inCallerTransaction(caller, this.#deps.db.schema)
    const end = { startedAt: run.startedAt, finishedAt: this.now(), result: resultJson(result) }
    if ((await completeIn(tx, run.lease, end)) === 'ok') return
    run.abort('lease_lost')
    throw new BelfryError(
      'lease_lost',
      `the lease of run ${run.id}, attempt ${run.attempt}, is no longer live: roll back`,
    )
  }

  drained(): Promise<void> {
    return this.#logs.drained()
  }
}
