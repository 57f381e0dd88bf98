import { gateKeyOf } from '../../job/gate-key.ts'
import { FAILURE_CLASS } from '../../job/states.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Random } from '../../runtime/random.ts'
import { PAUSE_KIND, type Paused, pauseError } from '../../shards/paused.ts'
import { type Beginnings, mustBeSaid } from '../beginnings.ts'
import type { ActiveRun } from '../handlers/active-run.ts'
import type { End } from '../handlers/judge.ts'
import { notBegun } from '../handlers/perform-handler.ts'
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
  beginnings: Beginnings
  http: HttpDeps
  paused: Paused
  publicUrl(): string
  liveNodes(): number
}

/** A run on its way to its target. */
interface Call {
  run: ActiveRun
  target: HttpCall['target']
  url: HttpCall['url']
  /** Of its circuit and its budget. */
  key: string
  /** What it was given is for `judgeHttp`. */
  done(end: End): void
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

  /** What a pool of the handlers calls. */
  readonly perform = (run: ActiveRun, done: (end: End) => void): void => {
    try {
      const { http: target } = run.definition
      if (target === undefined) done({ returned: NO_TARGET })
      else this.#begin(this.#callOf(run, target, done))
    } catch (threw) {
      done({ threw })
    }
  }

  #callOf(run: ActiveRun, target: HttpCall['target'], done: Call['done']): Call {
    const url = this.#deps.http.transport.urls.of(target.url)
    return { run, target, url, key: circuitKey(run.lease.tenantId, url.origin), done }
  }

  /** Sends nothing more; calls under way go on. */
  stop(): void {
    this.#isClosed = true
    this.#slots.close()
  }

  // The gates, one after the other. They call each other and not back: the commonest call waits for its slot and its answer,
  // and promises for that would cost as much as the call.

  #begin(call: Call): void {
    const { clock, circuits, limits, paused, random } = this.#deps
    const { origin } = call.url
    const { tenantId } = call.run.lease
    const now = clock.now()
    if (paused.hasOrigin(tenantId, origin)) {
      const why = {
        error: pauseError({ kind: PAUSE_KIND.origin, name: origin }),
        gateKey: gateKeyOf('pause', tenantId, origin),
      }
      call.done({ returned: { kind: 'held', until: paused.returnAt(now, random), ...why } })
      return
    }
    const isKnown = !circuits.isStale(now) && !limits.isStale(tenantId, now)
    if (isKnown) this.#passCircuit(call, now)
    else this.#await(call, this.#readFirst(call))
  }

  /** A gate that has to ask the database. */
  #await(call: Call, gate: Promise<void>): void {
    gate.catch((threw: unknown) => call.done({ threw }))
  }

  async #readFirst(call: Call): Promise<void> {
    const { clock, circuits, limits } = this.#deps
    if (circuits.isStale(clock.now())) await circuits.read()
    if (limits.isStale(call.run.lease.tenantId, clock.now())) await limits.read()
    this.#passCircuit(call, clock.now())
  }

  #passCircuit(call: Call, now: Instant): void {
    const { key, run, url } = call
    const circuit = this.#deps.circuits.of(key, run.lease.tenantId, url.origin, now)
    if (circuit.open !== null) this.#await(call, this.#probe(call, circuit))
    else this.#takeSlot(call, { circuit, generation: circuit.generation, probe: null }, now)
  }

  async #probe(call: Call, circuit: Circuit): Promise<void> {
    const { circuits, clock } = this.#deps
    const admitted = await circuits.admit(circuit, call.run.lease.deadline)
    if (admitted.kind === 'wait') {
      const { tenantId, origin } = circuit
      const why = { error: openCircuitError(origin), gateKey: gateKeyOf('circuit', tenantId, origin) }
      call.done({ returned: { kind: 'held', until: admitted.until, ...why } })
      return
    }
    const probe = admitted.kind === 'probe' ? admitted : null
    this.#takeSlot(call, { circuit, generation: circuit.generation, probe }, clock.now())
  }

  #takeSlot(call: Call, pass: Pass, now: Instant): void {
    const { run, key } = call
    const { origin } = call.url
    const { liveNodes, random } = this.#deps
    const isProbe = pass.probe !== null
    // The probe is one call anyway.
    if (isRetry(run) && !isProbe) {
      const budget = this.#budgets.of(key, now)
      if (!budget.takeRetry(now, liveNodes())) {
        const until = budget.returnAt(now, liveNodes(), random)
        call.done({ returned: { kind: 'held', until, error: `the retry budget of ${origin} is used up` } })
        return
      }
    }
    // Calls that hang from before the circuit opened may hold all slots.
    const entered = isProbe
      ? this.#slots.enterAnyway(origin, now)
      : this.#slots.enter(origin, now, (isFree) => this.#waited(call, pass, isFree))
    if (entered === true) this.#passLimit(call, pass, now)
    else if (entered === false) this.#turnAway(call, pass)
  }

  #waited(call: Call, pass: Pass, isFree: boolean): void {
    const { run, url } = call
    const now = this.#deps.clock.now()
    const isSpared = isFree && pass.circuit.open !== null
    const isTooLate = !isFree || isHalfOver(run, now)
    if (isFree && (isSpared || isTooLate)) this.#slots.leave(url.origin, now)
    if (isSpared) this.#begin(call)
    else if (isTooLate) this.#turnAway(call, pass)
    else this.#passLimit(call, pass, now)
  }

  #passLimit(call: Call, pass: Pass, now: Instant): void {
    const isLimited = this.#deps.limits.isLimited(call.run.lease.tenantId, call.url.origin)
    if (isLimited) this.#await(call, this.#askLimit(call, pass))
    else this.#send(call, pass, now)
  }

  /** The last of all gates: what it lets through counts from now on. */
  async #askLimit(call: Call, pass: Pass): Promise<void> {
    const { limits, clock } = this.#deps
    const { run } = call
    const { origin } = call.url
    const admitted = await limits.admit(run.lease, origin)
    if (admitted === true) {
      const done = (end: End) => {
        limits.ended(run.lease.tenantId, origin)
        call.done(end)
      }
      this.#send({ ...call, done }, pass, clock.now())
      return
    }
    this.#slots.leave(origin, clock.now())
    this.#record(pass, null, null)
    call.done({ returned: { kind: 'held', ...admitted, failureClass: 'rate_limited' } })
  }

  #send(call: Call, pass: Pass, now: Instant): void {
    const { run, key } = call
    run.start(now)
    if (!isRetry(run)) this.#budgets.of(key, now).first(now)
    perform(this.#requestOf(call), this.#deps.http, {
      ended: (end) => this.#ended(call, pass, end),
      unsaid: () => {
        this.#record(pass, null, null)
        call.done(notBegun(run))
        this.#slots.leave(call.url.origin, this.#deps.clock.now())
      },
      threw: (threw) => {
        this.#slots.leave(call.url.origin, this.#deps.clock.now())
        call.done({ threw })
      },
    })
  }

  #ended({ run, url, key, done }: Call, pass: Pass, end: HttpEnd): void {
    const now = this.#deps.clock.now()
    if (isRetry(run) && end.kind !== 'failed') this.#budgets.of(key, now).retryWentWell(now)
    this.#record(pass, healthOf(run, end), end)
    if (end.kind === 'waits')
      void this.#deps.callbacks.waitFor(run.lease, run.startedAt).then(() => done({ returned: FORGOTTEN }))
    else done({ returned: end })
    this.#slots.leave(url.origin, now)
  }

  #turnAway({ url, done }: Call, pass: Pass): void {
    this.#record(pass, null, null)
    const { origin } = url
    const until = this.#slots.returnAt(origin, this.#deps.clock.now())
    const held: HttpResult = { kind: 'held', until, error: `${origin} has no free slot on this node` }
    done({ returned: this.#isClosed ? RELEASED : held })
  }

  #record({ circuit, generation, probe }: Pass, health: Health, end: HttpEnd | null): void {
    const { circuits } = this.#deps
    const reason = end?.kind === 'failed' ? end.error : ''
    if (probe === null) circuits.record(circuit, generation, health, reason)
    // An answer that asks for fewer calls proves that the target is back.
    else void circuits.recordProbe(circuit, probe, isRateLimited(end) ? 'well' : health, reason)
  }

  #requestOf({ run, target, url }: Call): HttpCall {
    const { lease, definition, id } = run
    const call: HttpCall = {
      target,
      url,
      payload: definition.payload,
      tenantId: lease.tenantId,
      runId: id,
      jobId: lease.jobId,
      nominalAt: lease.nominalAt,
      attempt: lease.attempt,
      deadline: lease.deadline,
      signal: new RunSignal(run),
      announce: this.#announceOf(run),
      callbackUrl: `${this.#deps.publicUrl()}/v1/callbacks/${this.#deps.callbacks.tokenOf(id, lease)}`,
    }
    if (definition.payloadRef !== undefined) call.payloadRef = definition.payloadRef
    return call
  }

  /** As late as can be: a process that dies while it connects has not called. */
  #announceOf(run: ActiveRun): HttpCall['announce'] {
    const { beginnings } = this.#deps
    if (!mustBeSaid(run.lease, run.startedAt)) return null
    return (told) => beginnings.say(run.lease, (at) => told(run.begin(at)))
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

/** Its target has failed it before. A lease that expired says nothing about the target. */
const isRetry = ({ lease }: ActiveRun): boolean =>
  lease.failures > 0 && lease.failureClass !== FAILURE_CLASS.lease_expired

/** Too much of the attempt's time went by while it waited here: it gets all of it another time. */
const isHalfOver = ({ startedAt, lease: { deadline } }: ActiveRun, now: Instant): boolean =>
  now - startedAt > (deadline - startedAt) / 2

const isRateLimited = (end: HttpEnd | null): boolean => end?.kind === 'failed' && end.statusCode === 429
