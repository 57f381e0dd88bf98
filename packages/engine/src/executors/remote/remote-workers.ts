import type { Finish } from '../../attempts/finish.sql.ts'
import type { Finisher } from '../../attempts/finisher.ts'
import type { Definitions } from '../../leases/definitions.sql.ts'
import { holderOfCall, holderOfOneCall } from '../../leases/holder.ts'
import type { Receipts } from '../../leases/receipts.sql.ts'
import { callsWithLeases, leasesOfCalls } from '../../leases/recover.sql.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Step } from '../../runtime/loop.ts'
import type { Random } from '../../runtime/random.ts'
import type { Wakeups } from '../../shards/wakeups.sql.ts'
import type { Database } from '../../store/database.ts'
import { TraceParents } from '../http/trace-parent.ts'
import type { Progress } from '../left-behind.ts'
import { type DefinedLease, releaseOf, Startable } from '../startable.ts'
import { type Answer, Completions, type Said } from './completions.ts'
import { type BeatAnswer, Heartbeats, type Log } from './heartbeats.ts'
import { HeldLeases } from './held-leases.ts'
import type { KnownWorker } from './known-worker.ts'
import { KnownWorkers } from './known-workers.ts'
import { type LeaseClaim, LeaseTokens } from './lease-token.ts'
import { type LeasedRun, leasedRuns } from './leased-run.ts'
import { Poll } from './poll.ts'
import { PollLine } from './poll-line.ts'

export interface RemoteWorkersDeps {
  db: Database
  clock: Clock
  random: Random
  logger: Logger
  finisher: Finisher
  definitions: Definitions
  receipts: Receipts
  wakeups: Wakeups
  shards: number
  vaultKey: Uint8Array
  stopping: AbortSignal
  /** The next step is due now: whoever looks at the registry finds the worker there. */
  onNewWorker(): void
}

/** Who calls. An operator's worker may serve queues that all tenants share. */
export interface WorkerCaller {
  tenantId: number
  mayServeAll: boolean
  workerId: string
}

export interface LeaseCall {
  max: number
  waitMs: number
  leaseMs: number
  requestId?: string
  prefetch: number
}

export interface LeaseAnswer {
  runs: LeasedRun[]
  /** Tokens of runs that it holds and that shall stop. */
  cancelRequested?: string[]
  /** It shall take nothing more. */
  draining?: true
}

export interface HeartbeatItem {
  token: string
  checkpoint?: unknown
  progress?: Progress
  logs?: readonly Log[]
}

const UNKNOWN = { outcome: 'unknown_token' } as const
const TICK_MS = 2_000
const TELL_MS = 5_000
/** A queue that nobody asks for any more is no longer watched. */
const IDLE_LINE_MS = 60_000

/** The runs that workers elsewhere perform: lease calls that wait at this node, and what is said about leases that are out. */
export class RemoteWorkers implements Step {
  readonly #deps: RemoteWorkersDeps
  readonly #tokens: LeaseTokens
  readonly #traces: TraceParents
  readonly #held = new HeldLeases()
  readonly #workers = new KnownWorkers()
  readonly #heartbeats: Heartbeats
  readonly #completions: Completions
  readonly #startable: Startable
  readonly #lines = new Map<number, PollLine>()
  #pausedQueueIds: ReadonlySet<number> = new Set()
  #toldAt: Instant = 0
  #isClosed = false

  constructor(deps: RemoteWorkersDeps) {
    this.#deps = deps
    this.#tokens = new LeaseTokens(deps.vaultKey)
    this.#traces = new TraceParents(deps.random)
    this.#heartbeats = new Heartbeats({ ...deps, held: this.#held })
    this.#completions = new Completions({ ...deps, held: this.#held })
    this.#startable = new Startable({ ...deps, end: (finish) => this.#end(finish) })
  }

  /** The queues that somebody waits for, or did a moment ago. */
  get queueIds(): number[] {
    return [...this.#lines.keys()]
  }

  hint(queueId: number, level: number, turn: number): void {
    const line = this.#lines.get(queueId)
    if (!line) return
    line.claimer.hint(level, turn)
    if (line.size > 0) line.loop.wake()
  }

  sweep(queueId: number, heads: readonly (number | null)[]): void {
    const line = this.#lines.get(queueId)
    if (!line) return
    line.claimer.sweep(heads)
    if (line.claimer.backlogged && line.size > 0) line.loop.wake()
  }

  setPaused(queueIds: ReadonlySet<number>): void {
    this.#pausedQueueIds = queueIds
    for (const line of this.#lines.values()) {
      const wasPaused = line.isPaused
      line.isPaused = queueIds.has(line.queueId)
      if (wasPaused && !line.isPaused) line.loop.wake()
    }
  }

  /** A run shall stop: its worker hears it on an open call, or with its next heartbeat. */
  cancel(jobId: string, nominalAt: Instant): void {
    const held = this.#held.findRun(jobId, nominalAt)
    if (!held) return
    held.worker.toCancel.push(this.#tokens.sign(held.lease, held.leaseMs))
    held.worker.answerCalls()
  }

  async lease(
    caller: WorkerCaller,
    { queueId, queue }: { queueId: number; queue: string },
    call: LeaseCall,
    gone: AbortSignal,
  ): Promise<LeaseAnswer> {
    const worker = this.#saw(caller)
    worker.queue = queue
    if (worker.isDraining || worker.toCancel.length > 0 || this.#isClosed) return this.#answer(worker, [], call.leaseMs)
    const { tenantId, workerId } = caller
    const { requestId, max, prefetch, leaseMs } = call
    const holder =
      requestId === undefined ? holderOfOneCall(this.#deps.random) : holderOfCall(tenantId, workerId, requestId)
    const poll = new Poll(worker, { holder, max, prefetch, leaseMs, mayBeRepeated: requestId !== undefined })
    const isNew = !this.#lines.has(queueId)
    const line = this.#lineOf(queueId, queue)
    line.add(poll)
    const vanish = () => poll.answer([])
    gone.addEventListener('abort', vanish)
    const timer = call.waitMs === 0 ? null : this.#deps.clock.timer(call.waitMs, () => line.expire(poll))
    try {
      if (this.#held.hasCall(holder)) await this.#answerRepeated([poll])
      if (isNew || call.waitMs === 0) await line.look()
      if (call.waitMs === 0) line.expire(poll)
      const answer = await this.#answer(worker, await poll.answered, leaseMs)
      if (gone.aborted) this.#takeBack(await poll.answered)
      return answer
    } catch (error) {
      poll.answer([])
      this.#takeBack(await poll.answered)
      throw error
    } finally {
      timer?.cancel()
      gone.removeEventListener('abort', vanish)
    }
  }

  async heartbeat(
    caller: WorkerCaller,
    items: readonly HeartbeatItem[],
  ): Promise<{
    leases: ({ token: string } & (BeatAnswer | typeof UNKNOWN))[]
    draining?: true
  }> {
    const worker = this.#saw(caller)
    const claims = items.map(({ token }) => this.#claimOf(caller, token))
    const beats = items.flatMap(({ token: _, ...said }, i) => {
      const claim = claims[i]
      return claim ? [{ claim, ...said }] : []
    })
    worker.inFlight = beats.length
    const answers = (await this.#heartbeats.beat(beats))[Symbol.iterator]()
    const leases = items.map(({ token }, i) => {
      const answer = claims[i] ? (answers.next().value as BeatAnswer) : UNKNOWN
      return { token, ...answer }
    })
    for (const { token, outcome } of leases) if (outcome === 'cancel_requested') told(worker, token)
    return worker.isDraining ? { leases, draining: true } : { leases }
  }

  /** One answer per item. A token that comes twice is answered by the first: again if it says the same, else as lost. */
  async complete(
    caller: WorkerCaller,
    items: readonly { token: string; said: Said }[],
  ): Promise<({ token: string } & (Answer | typeof UNKNOWN))[]> {
    const worker = this.#saw(caller)
    const first = new Map<string, { at: number; status: Said['status'] }>()
    const endings: { fence: LeaseClaim['fence']; said: Said }[] = []
    for (const { token, said } of items) {
      if (first.has(token)) continue
      const claim = this.#claimOf(caller, token)
      if (claim === null) continue
      first.set(token, { at: endings.length, status: said.status })
      endings.push({ fence: claim.fence, said })
    }
    const answers = await this.#completions.end(endings)
    if (worker.toCancel.length > 0) for (const { token } of items) told(worker, token)
    return items.map(({ token, said }) => {
      const mine = first.get(token)
      if (mine === undefined) return { token, ...UNKNOWN }
      return {
        token,
        ...(mine.status === said.status ? (answers[mine.at] as Answer) : { outcome: 'lease_lost' as const }),
      }
    })
  }

  /** An operator, or the worker itself, said whether it takes anything more. */
  setDraining(tenantId: number, workerId: string, isDraining: boolean): void {
    const worker = this.#workers.find(tenantId, workerId)
    if (worker) this.#workers.drain(worker, isDraining)
  }

  forget(tenantId: number, workerId: string): void {
    this.#workers.forget(tenantId, workerId)
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const { db, clock, shards } = this.#deps
    const now = clock.now()
    this.#held.forgetExpired(now)
    for (const [queueId, line] of this.#lines) {
      if (line.size > 0 || now - line.lastUsedAt < IDLE_LINE_MS) continue
      this.#lines.delete(queueId)
      void line.loop.stop()
    }
    const unsure = [...this.#lines.values()].flatMap((line) => [...line.polls].filter((poll) => poll.mayBeRepeated))
    if (unsure.length > 0) await this.#answerRepeated(unsure)
    if (now - this.#toldAt >= TELL_MS) {
      await this.#workers.tell(db, { shards, now })
      this.#toldAt = now
    }
    return { waitMs: TICK_MS }
  }

  /** Answers whoever waits, and lets nobody wait any more. */
  close(): void {
    this.#isClosed = true
    for (const line of this.#lines.values()) for (const poll of line.polls) poll.answer([])
  }

  async stop(): Promise<void> {
    this.close()
    await Promise.all([...this.#lines.values()].map((line) => line.loop.stop()))
  }

  #saw({ tenantId, workerId }: WorkerCaller): KnownWorker {
    if (this.#workers.find(tenantId, workerId) === undefined) {
      this.#toldAt = 0
      this.#deps.onNewWorker()
    }
    return this.#workers.saw(tenantId, workerId, this.#deps.clock.now())
  }

  #claimOf(caller: WorkerCaller, token: string): LeaseClaim | null {
    const claim = this.#tokens.read(token)
    return claim !== null && (claim.tenantId === caller.tenantId || caller.mayServeAll) ? claim : null
  }

  async #answer(worker: KnownWorker, leases: DefinedLease[], leaseMs: number): Promise<LeaseAnswer> {
    const parts = { db: this.#deps.db, tokens: this.#tokens, traces: this.#traces }
    this.#held.add(worker, leaseMs, leases)
    const runs = leases.length === 0 ? [] : await leasedRuns(parts, leases, leaseMs)
    const cancelRequested = worker.toCancel
    worker.toCancel = []
    return {
      runs,
      ...(cancelRequested.length === 0 ? {} : { cancelRequested }),
      ...(worker.isDraining ? { draining: true } : {}),
    }
  }

  /** Those whose holder has leases already get these: the answer to the first call was lost. */
  async #answerRepeated(polls: Poll[]): Promise<void> {
    const { db } = this.#deps
    const repeated = await callsWithLeases(
      db,
      polls.map((poll) => poll.holder),
    )
    for (const poll of polls) if (!repeated.has(poll.holder)) poll.mayBeRepeated = false
    if (repeated.size === 0) return
    const leases = await this.#startable.of(await leasesOfCalls(db, [...repeated]))
    for (const poll of polls) {
      const own = leases.filter((lease) => lease.holder === poll.holder)
      poll.mayBeRepeated = false
      if (own.length > 0) poll.answer(own)
    }
  }

  #lineOf(queueId: number, queue: string): PollLine {
    let line = this.#lines.get(queueId)
    if (line === undefined) {
      line = new PollLine(queueId, queue, {
        ...this.#deps,
        startable: this.#startable,
        answerRepeated: (polls) => this.#answerRepeated(polls),
        giveBack: (finish) => this.#end(finish),
      })
      line.isPaused = this.#pausedQueueIds.has(queueId)
      this.#lines.set(queueId, line)
      line.loop.start()
    }
    return line
  }

  /** Whoever asked will not get them. */
  #takeBack(leases: readonly DefinedLease[]): void {
    const now = this.#deps.clock.now()
    for (const lease of leases) if (this.#held.take(lease)) this.#end(releaseOf(lease, now))
  }

  #end(finish: Finish): void {
    const { finisher, wakeups } = this.#deps
    finisher.finish(finish, (outcome) => {
      if (outcome === 'ok' && finish.kind === 'goes_on') wakeups.waiting(finish.fence.shard, finish.nextDueAt)
    })
  }
}

/** It knows by now. */
function told(worker: KnownWorker, token: string): void {
  if (worker.toCancel.length > 0) worker.toCancel = worker.toCancel.filter((one) => one !== token)
}
