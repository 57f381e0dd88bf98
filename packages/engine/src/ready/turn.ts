import type { Instant } from '../runtime/clock.ts'
import { QueueTurns } from './queue-turns.ts'
import type { Floors } from './turn-again.sql.ts'
import { type Claim, DEFAULT_LEVEL, HEAD_START_US } from './virtual-time.ts'

/** What a run is charged to as it becomes ready. */
export interface Charged {
  queueId: number
  tenantId: number
  fairnessKey: number | null
  priority: number
}

/** Flows of keys follow those of tenants, whose numbers are smaller; keys are 32 bits with a sign. */
const FIRST_KEY = 2 ** 33
/** Queues whose time is told to a statement that wakes runs of whatever queues. */
const MAX_FLOORS = 200

/**
 * A turn is microseconds of virtual time: the smaller, the sooner. It is given when a run becomes ready, never before, and
 * folds age, priority and fairness into one number, by which claiming is an index scan. Runs of one *flow* (a tenant in a
 * queue that tenants share, a fairness key in a tenant's own) stand one behind the other, as far apart as the queue can
 * serve its flows in turn; so however many one of them has, the first of another stands beside its next. Everything here is
 * memory and may be lost: then a flow stands beside its own old runs for a while.
 */
export class Turns {
  readonly #queues = new Map<number, QueueTurns>()
  #shared: ReadonlySet<number> = new Set()
  #weights: ReadonlyMap<number, number> = new Map()

  /** Of a run that becomes ready for the first time: its flow is charged. */
  next(now: Instant, run: Charged): number {
    const { queueId, tenantId, fairnessKey, priority } = run
    const flow = fairnessKey === null || this.#shared.has(queueId) ? tenantId : FIRST_KEY + fairnessKey
    const weight = this.#weights.size === 0 ? 1 : (this.#weights.get(tenantId) ?? 1)
    return this.queue(queueId).startOf(now * 1_000, flow, weight, priority) - headStart(priority)
  }

  /** Of a run that was charged before, or that never waits: it stands where the queue is. */
  again(now: Instant, { queueId, priority }: { queueId: number; priority: number }): number {
    const nowUs = now * 1_000
    return (this.#queues.get(queueId)?.time.floor(nowUs, priority) ?? nowUs) - headStart(priority)
  }

  /** Where queues are that are not at `now`, for statements that make runs of whatever queues ready again. */
  floors(now: Instant): Floors {
    const queueIds: number[] = []
    const starts: number[] = []
    const nowUs = now * 1_000
    for (const [queueId, { time }] of this.#queues) {
      const start = time.floor(nowUs, DEFAULT_LEVEL)
      if (start === nowUs || queueIds.length === MAX_FLOORS) continue
      queueIds.push(queueId)
      starts.push(start)
    }
    return { queueIds, starts }
  }

  /** Runs of the queue were leased. */
  claimed(now: Instant, queueId: number, claim: Claim): void {
    if (claim.runs.length > 0) this.queue(queueId).served(now * 1_000, claim)
  }

  /** What the pulse found at the head of each level of the queue. */
  saw(now: Instant, queueId: number, heads: readonly (number | null)[]): void {
    if (heads.every((turn) => turn === null)) this.#queues.get(queueId)?.drained()
    else this.queue(queueId).time.saw(now * 1_000, heads)
  }

  /** Queues that tenants share, and tenants whose weight is not 1. */
  learn({ shared, weights }: { shared: ReadonlySet<number>; weights: ReadonlyMap<number, number> }): void {
    this.#shared = shared
    this.#weights = weights
  }

  /** Forgets flows that are not ahead of their queue any more, and queues of which nothing is worth remembering. */
  tidy(now: Instant): void {
    for (const [queueId, queue] of this.#queues) {
      queue.forgetBehind(now * 1_000)
      if (queue.isForgettable(now * 1_000)) this.#queues.delete(queueId)
    }
  }

  get queues(): ReadonlyMap<number, QueueTurns> {
    return this.#queues
  }

  /** As this node knows it. */
  queue(queueId: number): QueueTurns {
    let queue = this.#queues.get(queueId)
    if (queue === undefined) {
      queue = new QueueTurns()
      this.#queues.set(queueId, queue)
    }
    return queue
  }
}

const headStart = (priority: number): number => (priority - DEFAULT_LEVEL) * HEAD_START_US
