import { PRIORITIES } from '../job/level.ts'

/**
 * The runs of one tenant, or of one fairness key, in a queue. Per priority it knows where the next run may start. A run
 * stands behind those of its flow that have its priority or a higher one; what a higher one costs, the lower ones pay too,
 * so that priority moves a flow's share about and never adds to it. Hence no level is ever before a higher one.
 */
export class Flow {
  readonly weight: number
  /** Per priority, in microseconds of virtual time. */
  readonly finish: number[] = new Array<number>(PRIORITIES).fill(0)
  /** Per priority, what this node has charged so far. */
  readonly charged: number[] = new Array<number>(PRIORITIES).fill(0)

  constructor(weight: number) {
    this.weight = weight
  }

  /** The start of the next run, which is charged. No run of the queue may start before `floor`. */
  start(floor: number, priority: number, charge: number): number {
    const start = Math.max(floor, this.finish[priority] as number)
    this.charged[priority] = (this.charged[priority] as number) + charge
    this.add(floor, priority, charge)
    return start
  }

  /** Somebody else has charged it. */
  add(floor: number, priority: number, charge: number): void {
    const { finish } = this
    for (let level = 0; level <= priority; level++) finish[level] = Math.max(floor, finish[level] as number) + charge
  }

  /** It is at least so far, whoever charged it. */
  reach(priority: number, finish: number): void {
    for (let level = 0; level <= priority; level++) {
      this.finish[level] = Math.max(finish, this.finish[level] as number)
    }
  }

  /** This node has charged it. */
  get isCharged(): boolean {
    return this.charged.some((sum) => sum > 0)
  }

  /** Its next run of any priority may start by then. */
  get lastFinish(): number {
    return this.finish[0] as number
  }
}
