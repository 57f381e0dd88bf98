import type { Instant } from '../../runtime/clock.ts'
import type { Step } from '../../runtime/loop.ts'
import { GiveBack } from '../give-back.ts'
import type { Progress } from '../left-behind.ts'
import { type Answer, Completions, type Said } from './completions.ts'
import { type BeatAnswer, Heartbeats, type Log } from './heartbeats.ts'
import { HeldLeases } from './held-leases.ts'
import type { KnownWorker } from './known-worker.ts'
import { KnownWorkers } from './known-workers.ts'
import { type LeaseAnswer, type LeaseCall, LeaseCalls, type LeaseCallsDeps } from './lease-calls.ts'
import { type LeaseClaim, LeaseTokens } from './lease-token.ts'
import type { Gone } from './poll.ts'

export interface RemoteWorkersDeps extends Omit<LeaseCallsDeps, 'tokens' | 'held'> {
  shards: number
  vaultKey: Uint8Array
  /** The next step is due now: whoever looks at the registry finds the worker there. */
  onNewWorker(): void
}

/** Who calls. An operator's worker may serve queues that all tenants share. */
export interface WorkerCaller {
  tenantId: number
  mayServeAll: boolean
  workerId: string
}

export interface HeartbeatItem {
  token: string
  checkpoint?: unknown
  progress?: Progress
  logs?: readonly Log[]
  /** Its work begins when the answer is `ok`. */
  begun?: true
}

const UNKNOWN = { outcome: 'unknown_token' } as const
const TICK_MS = 2_000
const TELL_MS = 5_000

/** The runs that workers elsewhere perform: who asks for them, and what is said about those that are out. */
export class RemoteWorkers implements Step {
  readonly name = 'remote workers'
  readonly role = 'api'
  readonly #deps: RemoteWorkersDeps
  readonly #tokens: LeaseTokens
  readonly #held = new HeldLeases()
  readonly #workers = new KnownWorkers()
  readonly #heartbeats: Heartbeats
  readonly #completions: Completions
  readonly calls: LeaseCalls
  #toldAt: Instant = 0

  constructor(deps: RemoteWorkersDeps) {
    this.#deps = deps
    this.#tokens = new LeaseTokens(deps.vaultKey)
    const parts = { ...deps, tokens: this.#tokens, held: this.#held }
    this.calls = new LeaseCalls(parts)
    this.#completions = new Completions({ ...parts, giveBack: new GiveBack(deps) })
    this.#heartbeats = new Heartbeats({ ...parts, completions: this.#completions })
  }

  lease(
    caller: WorkerCaller,
    queue: { queueId: number; queue: string },
    call: LeaseCall,
    gone: Gone,
  ): Promise<LeaseAnswer> {
    const worker = this.#saw(caller)
    worker.queue = queue.queue
    return this.calls.lease(worker, queue, call, gone)
  }

  /** A run shall stop: its worker hears it on an open call, or with its next heartbeat. */
  cancel(jobId: string, nominalAt: Instant): void {
    const held = this.#held.findRun(jobId, nominalAt)
    if (!held) return
    held.worker.toCancel.push(this.#tokens.sign(held.lease, held.leaseMs))
    held.worker.answerCalls()
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
    for (const { token, outcome, ...answer } of leases) {
      if (outcome === 'cancel_requested') told(worker, token)
      if ('leaseUntil' in answer) worker.holdsUntil = Math.max(worker.holdsUntil, Number(answer.leaseUntil))
    }
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

  forget(tenantId: number, workerId: string): boolean {
    return this.#workers.forget(tenantId, workerId)
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const { db, clock, shards } = this.#deps
    const now = clock.now()
    this.#held.forgetExpired(now)
    await this.calls.tidy(now)
    if (now - this.#toldAt >= TELL_MS) {
      await this.#workers.tell(db, { shards, now })
      this.#toldAt = now
    }
    return { waitMs: TICK_MS }
  }

  #saw({ tenantId, workerId }: WorkerCaller): KnownWorker {
    return this.#workers.saw(tenantId, workerId, this.#deps.clock.now(), this.#onNew)
  }

  readonly #onNew = (): void => {
    this.#toldAt = 0
    this.#deps.onNewWorker()
  }

  #claimOf(caller: WorkerCaller, token: string): LeaseClaim | null {
    const claim = this.#tokens.read(token)
    return claim !== null && (claim.tenantId === caller.tenantId || caller.mayServeAll) ? claim : null
  }
}

/** It knows by now. */
function told(worker: KnownWorker, token: string): void {
  if (worker.toCancel.length > 0) worker.toCancel = worker.toCancel.filter((one) => one !== token)
}
