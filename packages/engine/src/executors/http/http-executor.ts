import type { Clock, Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Random } from '../../runtime/random.ts'
import { PAUSE_KIND, type Paused, pauseError } from '../../shards/paused.ts'
import type { ActiveRun } from '../handlers/active-run.ts'
import type { Callbacks } from './callbacks.ts'
import type { Circuit, CircuitSettings, Health } from './circuit.ts'
import { type Circuits, circuitKey, openCircuitError } from './circuits.ts'
import type { CallSignal } from './exchange.ts'
import type { HttpCall, HttpDeps, HttpEnd } from './http-call.ts'
import { type HttpResult, healthOf } from './judge-http.ts'
import type { OriginLimits } from './origin-limits.ts'
import { ORIGIN_SLOTS, OriginSlots, type OriginSlotsSettings } from './origin-slots.ts'
import { perform } from './perform.ts'
import { RETRY_BUDGET, type RetryBudgetSettings, RetryBudgets } from './retry-budget.ts'

/** For tests, which have no minutes to wait. */
export interface HttpSettings {
  circuits?: CircuitSettings
  budget?: RetryBudgetSettings
  slots?: OriginSlotsSettings
}

interface HttpExecutorDeps {
  clock: Clock
  random: Random
  logger: Logger
  circuits: Circuits
  limits: OriginLimits
  callbacks: Callbacks
  http: HttpDeps
  paused: Paused
  publicUrl(): string
  liveNodes(): number
}

/** How the run came past its circuit. */
interface Pass {
  circuit: Circuit
  generation: number
  probe: { until: Instant } | null
}

/**
 * Performs runs whose target is an HTTP call. Four things stand before the request, and each may send the run back to
 * wait without counting it: the circuit of its target, the budget of retries, the slots that this node has for its origin, and
 * the limit that its tenant has set for the origin, which holds for all nodes together.
 */
export class HttpExecutor {
  readonly #deps: HttpExecutorDeps
  readonly #budgets: RetryBudgets
  readonly #slots: OriginSlots
  #isClosed = false

  constructor(deps: HttpExecutorDeps, settings: HttpSettings = {}) {
    this.#deps = deps
    this.#budgets = new RetryBudgets(settings.budget ?? RETRY_BUDGET)
    this.#slots = new OriginSlots(deps, settings.slots ?? ORIGIN_SLOTS)
  }

  /** What a pool of the handlers calls. Its answer is for `judgeHttp`. */
  readonly handle = (run: ActiveRun): Promise<HttpResult> => this.#perform(run)

  /** Sends nothing more; calls under way go on. */
  stop(): void {
    this.#isClosed = true
    this.#slots.close()
  }

  async #perform(run: ActiveRun): Promise<HttpResult> {
    const { http: target } = run.definition
    if (target === undefined) return NO_TARGET
    const { clock, circuits, limits, http, liveNodes, random, paused } = this.#deps
    const { tenantId } = run.lease
    const { origin } = http.transport.urls.of(target.url)
    const key = circuitKey(tenantId, origin)
    let now = clock.now()
    if (paused.hasOrigin(tenantId, origin)) {
      const error = pauseError({ kind: PAUSE_KIND.origin, name: origin })
      return { kind: 'held', until: paused.returnAt(now, random), error }
    }
    const circuit = circuits.of(key, tenantId, origin, now)
    if (circuits.isStale(now)) {
      await circuits.read()
      now = clock.now()
    }
    if (limits.isStale(tenantId, now)) {
      await limits.read()
      now = clock.now()
    }
    let probe: Pass['probe'] = null
    if (circuit.open !== null) {
      const admitted = await circuits.admit(circuit, run.lease.deadline)
      if (admitted.kind === 'wait') return { kind: 'held', until: admitted.until, error: openCircuitError(origin) }
      if (admitted.kind === 'probe') probe = admitted
      now = clock.now()
    }
    const pass: Pass = { circuit, generation: circuit.generation, probe }
    const budget = this.#budgets.of(key, now)
    const isRetry = run.failures > 0
    // The probe is one call anyway.
    if (isRetry && probe === null && !budget.takeRetry(now, liveNodes())) {
      const until = budget.returnAt(now, liveNodes(), random)
      return { kind: 'held', until, error: `the retry budget of ${origin} is used up` }
    }
    // Calls that hang from before the circuit opened may hold all slots.
    const entered = probe === null ? this.#slots.enter(origin, now) : this.#slots.enterAnyway(origin, now)
    if (entered !== true) {
      if (!(await entered)) return this.#turnedAway(pass, origin)
      now = clock.now()
      const isSpared = circuit.open !== null
      if (isSpared || isHalfOver(run, now)) {
        this.#slots.leave(origin, now)
        return isSpared ? this.#perform(run) : this.#turnedAway(pass, origin)
      }
    }
    // The last of all gates: what it lets through counts from now on.
    const isLimited = limits.isLimited(tenantId, origin)
    if (isLimited) {
      const admitted = await limits.admit(run.lease, origin)
      now = clock.now()
      if (admitted !== true) {
        this.#slots.leave(origin, now)
        this.#record(pass, null, null)
        return { kind: 'held', ...admitted, failureClass: 'rate_limited' }
      }
    }
    if (!isRetry) budget.first(now)
    let end: HttpEnd
    try {
      run.startedAt = now
      end = await perform(this.#callOf(run, target), http)
    } finally {
      now = clock.now()
      this.#slots.leave(origin, now)
      if (isLimited) limits.ended(tenantId, origin)
    }
    if (isRetry && end.kind !== 'failed') budget.retryWentWell(now)
    this.#record(pass, healthOf(run, end), end)
    if (end.kind !== 'waits') return end
    await this.#deps.callbacks.waitFor(run.lease)
    return FORGOTTEN
  }

  #turnedAway(pass: Pass, origin: string): HttpResult {
    this.#record(pass, null, null)
    if (this.#isClosed) return RELEASED
    const until = this.#slots.returnAt(origin, this.#deps.clock.now())
    return { kind: 'held', until, error: `${origin} has no free slot on this node` }
  }

  #record({ circuit, generation, probe }: Pass, health: Health, end: HttpEnd | null): void {
    const { circuits } = this.#deps
    const reason = end?.kind === 'failed' ? end.error : ''
    if (probe === null) circuits.record(circuit, generation, health, reason)
    // An answer that asks for fewer calls proves that the target is back.
    else void circuits.recordProbe(circuit, probe, isRateLimited(end) ? 'well' : health, reason)
  }

  #callOf(run: ActiveRun, target: HttpCall['target']): HttpCall {
    const { lease, definition, id } = run
    const call: HttpCall = {
      target,
      payload: definition.payload,
      tenantId: lease.tenantId,
      runId: id,
      jobId: lease.jobId,
      nominalAt: lease.nominalAt,
      attempt: lease.attempt,
      deadline: lease.deadline,
      signal: new RunSignal(run),
      callbackUrl: `${this.#deps.publicUrl()}/v1/callbacks/${this.#deps.callbacks.tokenOf(id, lease)}`,
    }
    if (definition.payloadRef !== undefined) call.payloadRef = definition.payloadRef
    return call
  }
}

/** A call has one listener. */
class RunSignal implements CallSignal {
  readonly #run: ActiveRun

  constructor(run: ActiveRun) {
    this.#run = run
  }

  get aborted(): boolean {
    return this.#run.aborted !== null
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#run.onAbort = listener
  }

  removeEventListener(): void {
    this.#run.onAbort = null
  }
}

const FORGOTTEN: HttpResult = { kind: 'forgotten' }
const RELEASED: HttpResult = { kind: 'released' }
const NO_TARGET: HttpResult = {
  kind: 'failed',
  failureClass: 'invalid_target',
  error: 'the job has no http target any more',
  retryable: false,
  statusCode: null,
  response: null,
  written: false,
}

/** Too much of the attempt's time went by while it waited here: it gets all of it another time. */
const isHalfOver = ({ startedAt, lease: { deadline } }: ActiveRun, now: Instant): boolean =>
  now - startedAt > (deadline - startedAt) / 2

const isRateLimited = (end: HttpEnd | null): boolean => end?.kind === 'failed' && end.statusCode === 429
