import { completeIn } from '../../attempts/complete-in.sql.ts'
import { afterOf, type ParentRun, type RunWithParents, readParentRuns } from '../../dependencies/parent-runs.sql.ts'
import { BelfryError } from '../../errors.ts'
import { appendLogs, type LogLevel, type LogLine, MAX_LOG_LINES } from '../../leases/attempt-logs.sql.ts'
import { readCheckpoints } from '../../leases/checkpoints.sql.ts'
import { lookAtLeases, renewLeases } from '../../leases/heartbeat.sql.ts'
import { keepCheckpoints } from '../../leases/keep-checkpoints.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import { Lanes } from '../../runtime/lanes.ts'
import type { Logger } from '../../runtime/logger.ts'
import { type CallerTransaction, inCallerTransaction, type Vital } from '../../store/database.ts'
import { checkpointJson, logMessage, type Progress, progressJson } from '../left-behind.ts'
import type { ActiveRun, RunServices } from './active-run.ts'
import { resultJson } from './judge.ts'

interface AskedParents extends RunWithParents {
  resolve(parents: ParentRun[]): void
  reject(error: unknown): void
}

interface RunSupportDeps {
  db: Vital
  clock: Clock
  logger: Logger
  leaseMs: number
}

/** What a run may ask of the engine while its handler performs it. Every write names the attempt's fence. */
export class RunSupport implements RunServices {
  readonly #deps: RunSupportDeps
  readonly #logs: Lanes<LogLine>
  readonly #lines = new WeakMap<ActiveRun, number>()
  readonly #parents: Lanes<AskedParents>

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
    this.#parents = new Lanes({ lanes: 1, maxBatch: 200, work: (asked) => this.#readParents(asked) })
  }

  /** Runs that ask together are answered by one statement. */
  readParents(run: ActiveRun): Promise<ParentRun[]> {
    const { nominalAt, oneOff, definition } = run.lease
    const after = afterOf(definition)
    if (after === null) return Promise.resolve([])
    return new Promise((resolve, reject) => this.#parents.push({ after, nominalAt, oneOff, resolve, reject }))
  }

  async #readParents(asked: AskedParents[]): Promise<void> {
    try {
      const found = await readParentRuns(this.#deps.db, asked)
      for (const [i, { resolve }] of asked.entries()) resolve(found[i] ?? [])
    } catch (error) {
      for (const { reject } of asked) reject(error)
    }
  }

  now(): Instant {
    return this.#deps.clock.now()
  }

  async renew(run: ActiveRun): Promise<void> {
    const { db, leaseMs } = this.#deps
    let [held] = await renewLeases(db, [run.lease], leaseMs)
    held ??= (await lookAtLeases(db, [run.lease]))[0]
    if (!held) {
      run.abort('lease_lost')
      throw new BelfryError('lease_lost', `the lease of run ${run.id}, attempt ${run.attempt}, is no longer live`)
    }
    run.lease.leaseUntil = held.leaseUntil
    if (held.cancelRequested) run.abort('canceled')
  }

  async readCheckpoint(run: ActiveRun): Promise<unknown> {
    const [found] = await readCheckpoints(this.#deps.db, [run.lease])
    return found && JSON.parse(found.json)
  }

  saveCheckpoint(run: ActiveRun, value: unknown): Promise<void> {
    return this.#leave(run, { value: checkpointJson(value), progress: null })
  }

  saveProgress(run: ActiveRun, progress: Progress): Promise<void> {
    return this.#leave(run, { value: null, progress: progressJson(progress) })
  }

  async #leave(run: ActiveRun, left: { value: string | null; progress: string | null }): Promise<void> {
    run.checkpointed = true
    if ((await keepCheckpoints(this.#deps.db, [{ fence: run.lease, ...left }])).size === 0) return
    run.abort('lease_lost')
    throw new BelfryError('lease_lost', `the lease of run ${run.id}, attempt ${run.attempt}, is no longer live`)
  }

  log(run: ActiveRun, level: LogLevel, message: string): void {
    const line = (this.#lines.get(run) ?? 0) + 1
    if (line > MAX_LOG_LINES) return
    this.#lines.set(run, line)
    const { shard, jobId, nominalAt, attempt, tenantId } = run.lease
    const text = line === MAX_LOG_LINES ? 'further lines of this attempt are left out' : message
    this.#logs.push({
      shard,
      jobId,
      nominalAt,
      attempt,
      tenantId,
      line,
      level,
      loggedAt: this.now(),
      message: logMessage(text),
    })
  }

  async completeIn(run: ActiveRun, caller: CallerTransaction, result: unknown): Promise<void> {
    run.completesItself = true
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
