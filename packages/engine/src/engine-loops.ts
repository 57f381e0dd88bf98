import type { DependencySide } from './dependency-side.ts'
import type { HttpSide } from './http-side.ts'
import type { Promoter } from './promotion/promoter.ts'
import type { Replanning } from './promotion/replanning.ts'
import type { Clock } from './runtime/clock.ts'
import type { Logger } from './runtime/logger.ts'
import { Loop, type Step } from './runtime/loop.ts'
import type { Role } from './shards/roles.ts'
import type { WakeSide } from './wake-side.ts'

const PROMOTE_LANES = 2

/** The steps of a node that are done again and again. */
export interface EngineSteps {
  pulse: Step
  keeper: Step
  notifier: Step
  partitioner: Step
  reader: Step
  promoter: Promoter
  backfiller: Step
  reaper: Step
  expirer: Step
  httpQueues: Step
  remote: Step
  historyKeeper: Step
  purge: Step
  replanning: Replanning
  waking: WakeSide
  dependencies: DependencySide
  http: HttpSide
}

/** The loops of a node, each named for what its step does. Which of them run is said by the node's roles. */
export class EngineLoops {
  readonly pulse: Loop
  readonly reader: Loop
  readonly alone: Loop
  readonly waker: Loop
  readonly replanner: Loop
  readonly backfiller: Loop
  readonly sweep: Loop
  readonly expirer: Loop
  readonly reaper: Loop
  readonly httpQueues: Loop
  readonly remote: Loop
  readonly #promoters: Loop[]
  /** These go on until everything else has ended: leases are kept, and the node is seen. */
  readonly #last: Loop[]
  readonly #others: Loop[]

  constructor(steps: EngineSteps, roles: readonly Role[], deps: { clock: Clock; logger: Logger }) {
    const { promoter, replanning, waking, dependencies, http } = steps
    const loop = (name: string, step: Step) => new Loop(name, step, deps)
    const promoteBatch = { runOnce: () => promoter.runBatch() }
    this.pulse = loop('pulse', steps.pulse)
    this.reader = loop('timer reader', steps.reader)
    this.#promoters = Array.from({ length: PROMOTE_LANES }, (_, i) => loop(`promoter ${i + 1}`, promoteBatch))
    this.alone = loop('promoter of single jobs', { runOnce: () => promoter.runAlone() })
    this.waker = loop('waker', waking.waker)
    this.replanner = loop('replanner', replanning.calendars)
    this.backfiller = loop('backfiller', steps.backfiller)
    this.sweep = loop('sweep', waking.sweep)
    this.expirer = loop('expirer', steps.expirer)
    this.reaper = loop('reaper', steps.reaper)
    this.httpQueues = loop('HTTP queues', steps.httpQueues)
    this.remote = loop('remote workers', steps.remote)
    const ofRole: Record<Role, Loop[]> = {
      api: [this.remote],
      promoter: [
        ...[this.reader, ...this.#promoters, this.alone, this.backfiller, this.sweep, this.reaper, this.expirer],
      ],
      dispatcher: [this.httpQueues, ...http.steps.map(([name, step]) => loop(name, step))],
      archivist: [loop('history keeper', steps.historyKeeper), loop('purge', steps.purge)],
    }
    this.#last = [this.pulse, loop('keeper', steps.keeper)]
    this.#others = [
      loop('notifier', steps.notifier),
      loop('partitioner', steps.partitioner),
      ...[this.waker, dependencies.loop, this.replanner],
      loop('zone keeper', replanning.zones),
      ...[...new Set(roles)].flatMap((role) => ofRole[role]),
    ]
  }

  start(): void {
    for (const loop of [...this.#last, ...this.#others]) loop.start()
  }

  async stopOthers(): Promise<void> {
    await Promise.all(this.#others.map((loop) => loop.stop()))
  }

  async stopLast(): Promise<void> {
    await Promise.all(this.#last.map((loop) => loop.stop()))
  }

  wakePromoters(): void {
    for (const loop of this.#promoters) loop.wake()
  }
}
