import type { Instant } from '../runtime/clock.ts'
import type { Flow } from './flow.ts'
import type { Turns } from './turn.ts'

/** What a node tells the others with its pulse, as lists of numbers: there may be many. */
export interface Charges {
  /** How far queues are, whether runs of them wait, and what interval the node has measured. */
  queues: (readonly [queueId: number, reached: number, waits: 0 | 1, intervalUs: number | null])[]
  /** Flows that are ahead of their queue; per priority where they are and what the node itself has charged so far. */
  flows: (readonly [queueId: number, flow: number, weight: number, ...levels: number[]])[]
}

export interface Fleet {
  shared: readonly number[]
  weights: readonly (readonly [tenantId: number, weight: number])[]
  nodes: readonly { id: string; isLive: boolean; charges: unknown }[]
}

const MAX_QUEUES = 1_000
const MAX_FLOWS = 1_000
/** Of one node; if there are more, some of what it charged is counted again. */
const MAX_REMEMBERED = 100_000

/**
 * Makes one share of what a flow enters through several nodes: each adds to its own charges those that the others made. That
 * is a second late, and what was given out meanwhile stands side by side; the next stands behind all of it.
 */
export class Exchange {
  readonly #turns: Turns
  /** By node, what it had charged when it was last heard, by queue, flow and priority. */
  #heard = new Map<string, Map<string, number>>()
  #isFirst = true

  constructor(turns: Turns) {
    this.#turns = turns
  }

  /** Null: nothing is worth telling. */
  tell(now: Instant): Charges | null {
    this.#turns.tidy(now)
    const queues: [number, number, 0 | 1, number | null][] = []
    const ahead: { queueId: number; key: number; flow: Flow; lead: number }[] = []
    for (const [queueId, { time, interval, flows }] of this.#turns.queues) {
      const isWorthTelling = time.waits || time.reached > now * 1_000 || interval.own !== null
      if (isWorthTelling && queues.length < MAX_QUEUES) {
        queues.push([queueId, time.reached, time.waits ? 1 : 0, interval.own])
      }
      for (const [key, flow] of flows) {
        if (flow.isCharged) ahead.push({ queueId, key, flow, lead: flow.lastFinish - time.reached })
      }
    }
    if (queues.length === 0 && ahead.length === 0) return null
    if (ahead.length > MAX_FLOWS) ahead.sort((a, b) => b.lead - a.lead)
    const flows = ahead
      .slice(0, MAX_FLOWS)
      .map(({ queueId, key, flow }) => [queueId, key, flow.weight, ...levelsOf(flow)] as const)
    return { queues, flows }
  }

  hear(now: Instant, { shared, weights, nodes }: Fleet): void {
    this.#turns.learn({ shared: new Set(shared), weights: new Map(weights) })
    const queues = new Map<number, { waits: boolean; intervalUs: number | null }>()
    const heard = new Map<string, Map<string, number>>()
    for (const { id, isLive, charges } of nodes) {
      const { queues: told, flows } = charges as Charges
      for (const [queueId, reached, waits, intervalUs] of told) {
        this.#turns.queue(queueId).time.reach(reached)
        if (!isLive) continue
        const other = queues.get(queueId)
        queues.set(queueId, {
          waits: waits === 1 || other?.waits === true,
          intervalUs: Math.max(intervalUs ?? 0, other?.intervalUs ?? 0) || null,
        })
      }
      heard.set(id, this.#hearFlows(now, this.#heard.get(id) ?? new Map(), flows))
    }
    for (const [queueId, queue] of this.#turns.queues) queue.hear(queues.get(queueId) ?? NOTHING)
    this.#heard = heard
    this.#isFirst = false
  }

  #hearFlows(now: Instant, known: Map<string, number>, flows: Charges['flows']): Map<string, number> {
    if (known.size > MAX_REMEMBERED) known.clear()
    for (const [queueId, key, weight, ...levels] of flows) {
      const queue = this.#turns.queue(queueId)
      const flow = queue.flow(key, weight)
      for (let i = 0; i < levels.length; i += 3) {
        const [priority, finish, charged] = levels.slice(i) as [number, number, number]
        const name = `${queueId}/${key}/${priority}`
        const before = known.get(name) ?? 0
        known.set(name, charged)
        // Whoever has just started knows nothing of what was before, and takes over where the others are.
        if (this.#isFirst) flow?.reach(priority, finish)
        // A smaller sum than before is that of a flow which that node had forgotten meanwhile.
        else flow?.add(queue.time.floor(now * 1_000, priority), priority, charged < before ? charged : charged - before)
      }
    }
    return known
  }
}

const NOTHING = { waits: false, intervalUs: null }

const levelsOf = ({ charged, finish }: Flow): number[] =>
  charged.flatMap((sum, priority) => (sum === 0 ? [] : [priority, finish[priority] as number, sum]))
