import { UNSTOPPED_MS } from '../../job/overtime.ts'
import { appendLogs, type LogLevel, type LogLine } from '../../leases/attempt-logs.sql.ts'
import type { Checkpoint } from '../../leases/checkpoints.sql.ts'
import { type HeldLease as Live, lookAtLeases, renewEach } from '../../leases/heartbeat.sql.ts'
import { keepCheckpoints } from '../../leases/keep-checkpoints.ts'
import { byLockOrder, type Fence, runKey } from '../../leases/lease.ts'
import { leaseKey } from '../../leases/read-leases.sql.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import { Lanes } from '../../runtime/lanes.ts'
import { DAY_MS } from '../../schedule/duration.ts'
import type { Vital } from '../../store/database.ts'
import type { Beginnings } from '../beginnings.ts'
import { checkpointJson, logMessage, type Progress, progressJson } from '../left-behind.ts'
import type { Completions, Said } from './completions.ts'
import type { HeldLeases } from './held-leases.ts'
import type { LeaseClaim } from './lease-token.ts'

export interface HeartbeatsDeps {
  db: Vital
  clock: Clock
  held: HeldLeases
  beginnings: Beginnings
  completions: Completions
}

export interface Log {
  line?: number
  level?: LogLevel
  message: string
  at?: Date
}

/** What a worker says of an attempt that it is performing. */
export interface Beat {
  claim: LeaseClaim
  checkpoint?: unknown
  progress?: Progress
  logs?: readonly Log[]
  begun?: true
}

export interface BeatAnswer {
  outcome: 'ok' | 'cancel_requested' | 'lease_lost'
  leaseUntil?: Date
  note?: string
}

interface Renewal {
  claim: LeaseClaim
  resolve(answer: BeatAnswer): void
  reject(error: unknown): void
}

interface LogBatch {
  beats: readonly Beat[]
  resolve(): void
  reject(error: unknown): void
}

const MAX_BATCH = 1_000
const LOGS_AT_ONCE = 500

/** Renews leases of workers, whoever's call they come with, in batches, and keeps what their attempts leave meanwhile. */
export class Heartbeats {
  readonly #deps: HeartbeatsDeps
  readonly #renewals: Lanes<Renewal>
  /** One after another: a line that is sent again while it is being written must be found. */
  readonly #logs: Lanes<LogBatch>

  constructor(deps: HeartbeatsDeps) {
    this.#deps = deps
    this.#logs = new Lanes({ lanes: 1, maxBatch: MAX_BATCH, work: (batch) => this.#writeLogs(batch) })
    this.#renewals = new Lanes({ lanes: 1, maxBatch: MAX_BATCH, work: (batch) => this.#renew(batch) })
  }

  /** One answer per beat, in their order; each is of a lease of its own. */
  async beat(beats: readonly Beat[]): Promise<BeatAnswer[]> {
    const answers = await Promise.all(
      beats.map(
        ({ claim }) => new Promise<BeatAnswer>((resolve, reject) => this.#renewals.push({ claim, resolve, reject })),
      ),
    )
    await this.#begin(beats, answers)
    await this.#leave(beats, answers)
    // Only the live attempt has a log: whoever made up the run in a token writes nowhere.
    const logged = beats.filter(({ logs }, i) => logs?.length && answers[i]?.outcome !== 'lease_lost')
    if (logged.length > 0)
      await new Promise<void>((resolve, reject) => this.#logs.push({ beats: logged, resolve, reject }))
    return answers
  }

  async #begin(beats: readonly Beat[], answers: BeatAnswer[]): Promise<void> {
    const beginning = beats.flatMap(({ claim, begun }, i) => {
      const { outcome, leaseUntil } = answers[i] as BeatAnswer
      return begun && outcome === 'ok' && leaseUntil ? [{ ...claim.fence, leaseUntil: leaseUntil.getTime(), i }] : []
    })
    if (beginning.length === 0) return
    const said = await this.#deps.beginnings.sayAll(beginning)
    for (const one of beginning) if (!said.has(one)) answers[one.i] = { outcome: 'lease_lost' }
  }

  async #writeLogs(batch: LogBatch[]): Promise<void> {
    try {
      await this.#log(batch.flatMap(({ beats }) => beats))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  async #renew(batch: Renewal[]): Promise<void> {
    try {
      const now = this.#deps.clock.now()
      const byRun = new Map<string, Renewal[]>()
      for (const renewal of batch) {
        const key = runKey(renewal.claim.fence)
        byRun.set(key, [...(byRun.get(key) ?? []), renewal])
      }
      // Of one run there may be beats of several attempts, and of one attempt several: each statement names a run once.
      while (byRun.size > 0) {
        const round = [...byRun].map(([key, [first, ...rest]]) => {
          if (rest.length === 0) byRun.delete(key)
          else byRun.set(key, rest)
          return first as Renewal
        })
        await this.#renewRound(round, now)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  async #renewRound(round: Renewal[], now: Instant): Promise<void> {
    const live = new Map<string, Live>()
    await this.#ask(round, live)
    const unstopped = round.filter(
      ({ claim }) => now >= (live.get(runKey(claim.fence))?.lastUntil ?? now + DAY_MS) - UNSTOPPED_MS,
    )
    if (unstopped.length > 0)
      await this.#deps.completions.end(unstopped.map(({ claim: { fence } }) => ({ fence, said: UNSTOPPED })))
    for (const { claim } of unstopped) live.delete(runKey(claim.fence))
    for (const { claim, resolve } of round) resolve(this.#answerOf(claim.fence, live.get(runKey(claim.fence))))
  }

  /** A row that somebody holds is passed over: it is live, and is renewed by the next beat. */
  async #ask(renewals: readonly Renewal[], live: Map<string, Live>): Promise<void> {
    const { db } = this.#deps
    const claims = renewals.map(({ claim }) => claim).sort((a, b) => byLockOrder(a.fence, b.fence))
    const fences = claims.map(({ fence }) => fence)
    const lengths = claims.map(({ leaseMs }) => leaseMs)
    for (const one of await renewEach(db, fences, lengths)) live.set(runKey(one), one)
    const passed = fences.filter((fence) => !live.has(runKey(fence)))
    if (passed.length > 0) for (const one of await lookAtLeases(db, passed)) live.set(runKey(one), one)
  }

  #answerOf(fence: Fence, live: Live | undefined): BeatAnswer {
    const { held } = this.#deps
    if (live === undefined) {
      held.take(fence)
      return { outcome: 'lease_lost' }
    }
    if (live.cancelRequested) return { outcome: 'cancel_requested' }
    held.renewed(fence, live.leaseUntil)
    return { outcome: 'ok', leaseUntil: new Date(live.leaseUntil) }
  }

  async #leave(beats: readonly Beat[], answers: BeatAnswer[]): Promise<void> {
    const { db, held } = this.#deps
    const items = new Map<string, { i: number; item: Checkpoint }>()
    beats.forEach((beat, i) => {
      if (beat.checkpoint === undefined && beat.progress === undefined) return
      const answer = answers[i] as BeatAnswer
      if (answer.outcome === 'lease_lost') return
      try {
        const value = beat.checkpoint === undefined ? null : checkpointJson(beat.checkpoint)
        const progress = beat.progress === undefined ? null : progressJson(beat.progress)
        const one = held.get(beat.claim.fence)
        if (one) one.hasLeft = true
        items.set(runKey(beat.claim.fence), { i, item: { fence: beat.claim.fence, value, progress } })
      } catch (error) {
        answer.note = `not kept: ${error instanceof Error ? error.message : String(error)}`
      }
    })
    if (items.size === 0) return
    const lost = await keepCheckpoints(
      db,
      [...items.values()].map(({ item }) => item),
    )
    for (const [key, { i }] of items) if (lost.has(key)) answers[i] = { outcome: 'lease_lost' }
  }

  async #log(beats: readonly Beat[]): Promise<void> {
    const { db, clock } = this.#deps
    const numbered = new Set<string>()
    const isNew = (fence: LeaseClaim['fence'], line: number | undefined): boolean => {
      if (line === undefined) return true
      const key = `${leaseKey(fence)}.${line}`
      if (numbered.has(key)) return false
      numbered.add(key)
      return true
    }
    const lines: LogLine[] = beats.flatMap(({ claim, logs = [] }) => {
      const { shard, jobId, nominalAt, attempt } = claim.fence
      const once = logs.filter(({ line }) => isNew(claim.fence, line))
      return once.map(({ line, level = 'info', message, at }) => ({
        ...{ shard, jobId, nominalAt, attempt, tenantId: claim.tenantId, line: line ?? null, level },
        loggedAt: loggedAt(at, nominalAt, clock.now()),
        message: logMessage(message),
      }))
    })
    for (let i = 0; i < lines.length; i += LOGS_AT_ONCE) await appendLogs(db, lines.slice(i, i + LOGS_AT_ONCE))
  }
}

const UNSTOPPED: Said = {
  status: 'failed',
  error: { class: 'timeout', message: 'its worker still renewed the lease after the timeout' },
}

/** A worker's clock may be off: lines stay within the days that the run's log is looked for in. */
const loggedAt = (at: Date | undefined, nominalAt: Instant, now: Instant): Instant =>
  at === undefined ? now : Math.min(now, Math.max(at.getTime(), nominalAt, now - DAY_MS))
