import { FairInterval } from './fair-interval.ts'
import { Flow } from './flow.ts'
import { type Claim, DEFAULT_LEVEL, VirtualTime } from './virtual-time.ts'

/** Flows of one queue that are remembered; whoever comes then stands where the queue is, uncharged. */
const MAX_FLOWS = 20_000

/** One queue as this node knows it: how far it is, and the flows that are ahead of it. */
export class QueueTurns {
  readonly time = new VirtualTime()
  readonly interval = new FairInterval()
  readonly #flows = new Map<number, Flow>()

  get flows(): ReadonlyMap<number, Flow> {
    return this.#flows
  }

  /** Where the next run of the flow starts; it is charged. */
  startOf(nowUs: number, flow: number, weight: number, priority: number): number {
    const floor = this.time.floor(nowUs, priority)
    const charged = this.flow(flow, weight)
    return charged === null ? floor : charged.start(floor, priority, this.#charge(weight))
  }

  /** Null: there are too many. */
  flow(key: number, weight: number): Flow | null {
    const known = this.#flows.get(key)
    if (known !== undefined) return known
    if (this.#flows.size >= MAX_FLOWS) return null
    const flow = new Flow(weight)
    this.#flows.set(key, flow)
    return flow
  }

  served(nowUs: number, claim: Claim): void {
    this.time.served(nowUs, claim, this.interval.us)
    this.interval.served(nowUs, claim.runs.length, claim.mayBeMore)
  }

  /** Nothing waits. */
  drained(): void {
    this.time.drained()
    this.interval.settle()
  }

  /** What other nodes know of it. */
  hear({ waits, intervalUs }: { waits: boolean; intervalUs: number | null }): void {
    this.time.hear(waits)
    this.interval.hear(intervalUs)
  }

  /** A flow that the queue has caught up with is as one that was never there. */
  forgetBehind(nowUs: number): void {
    const floor = this.time.floor(nowUs, DEFAULT_LEVEL)
    let weight = 0
    for (const [key, flow] of this.#flows) {
      if (flow.lastFinish <= floor) this.#flows.delete(key)
      else weight += flow.weight
    }
    this.interval.saw(weight)
  }

  isForgettable(nowUs: number): boolean {
    const isKnown = this.time.waits || this.interval.isKnown
    return !isKnown && this.#flows.size === 0 && this.time.reached <= nowUs
  }

  #charge(weight: number): number {
    return Math.max(1, Math.round(this.interval.us / weight))
  }
}
