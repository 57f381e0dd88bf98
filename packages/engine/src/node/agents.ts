import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { Loop, type Step } from '../runtime/loop.ts'
import type { PulseAnswer } from '../shards/pulse.sql.ts'
import type { Asked } from '../shards/pulse.ts'
import type { Role } from '../shards/roles.ts'

/** What a node does by itself, again and again: one bounded step at a time. */
export interface Agent extends Step {
  readonly name: string
  /** Only nodes with this role run it; without one every node does. */
  readonly role?: Role
  /** From now on these are the shards of this node. */
  own?(shards: readonly number[]): void
  /** Takes what concerns it from the pulse's answer; answers whether there is something to do now. */
  saw?(answer: PulseAnswer, asked: Asked): boolean
}

/** The agents of a node. Everything that concerns all of them is a loop over one list. */
export class Agents {
  readonly #all: readonly Agent[]
  /** Of those that this node's roles run. */
  readonly #loops: ReadonlyMap<Agent, Loop>

  constructor(all: readonly Agent[], roles: readonly Role[], deps: { clock: Clock; logger: Logger }) {
    this.#all = all
    const run = all.filter(({ role }) => role === undefined || roles.includes(role))
    this.#loops = new Map(run.map((agent) => [agent, new Loop(agent.name, agent, deps)]))
  }

  start(): void {
    for (const loop of this.#loops.values()) loop.start()
  }

  /** There is something to do for these. */
  wake(...agents: readonly Agent[]): void {
    for (const agent of agents) this.#loops.get(agent)?.wake()
  }

  own(shards: readonly number[]): void {
    for (const agent of this.#all) {
      agent.own?.(shards)
      if (agent.own !== undefined) this.wake(agent)
    }
  }

  saw(answer: PulseAnswer, asked: Asked): void {
    for (const agent of this.#all) if (agent.saw?.(answer, asked)) this.wake(agent)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#loops.values()].map((loop) => loop.stop()))
  }
}
