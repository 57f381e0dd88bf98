import { pause } from '../../../src/runtime/pause.ts'
import type { Fault } from './fault-plan.ts'
import type { Fleet } from './fleet.ts'

/** A fault that happened, with the times when it began and when its process was back. */
export type Happened = Fault & { beganAt: number; overAt: number }

/** What a crash happens to. */
export interface Crashing {
  /** Ends when it works again. */
  crash(): Promise<void>
}

/** Lets the planned faults happen; ends when the last process is back. */
export class Faults {
  readonly happened: Happened[] = []
  readonly slowStarts: string[] = []
  readonly #fleet: Fleet
  readonly #server: Crashing

  constructor(fleet: Fleet, server: Crashing) {
    this.#fleet = fleet
    this.#server = server
  }

  async run(plan: readonly Fault[], signal: AbortSignal): Promise<void> {
    const beganAt = Date.now()
    const open: Promise<void>[] = []
    for (const fault of plan) {
      await waitUntil(beganAt + fault.atMs, signal)
      if (signal.aborted) break
      open.push(this.#happen(fault, signal))
    }
    await Promise.all(open)
  }

  async #happen(fault: Fault, signal: AbortSignal): Promise<void> {
    const happened = { ...fault, beganAt: Date.now(), overAt: Number.POSITIVE_INFINITY }
    this.happened.push(happened)
    if (fault.kind === 'crash') {
      await this.#server.crash()
    } else {
      const member = this.#fleet.get(fault.member)
      if (fault.kind === 'kill') member.kill()
      else member.signal('SIGSTOP')
      await waitUntil(happened.beganAt + fault.lastsMs, signal)
      if (fault.kind === 'stop') member.signal('SIGCONT')
      else if (!signal.aborted && !(await member.start()))
        this.slowStarts.push(`${member.name} was not ready a minute after its start: ${member.said}`)
    }
    happened.overAt = Date.now()
  }
}

const SLICE_MS = 200

/** Waits in slices, so that an interrupted run does not wait for the end of a long fault. */
async function waitUntil(at: number, signal: AbortSignal): Promise<void> {
  for (let left = at - Date.now(); left > 0 && !signal.aborted; left = at - Date.now())
    await pause(Math.min(left, SLICE_MS))
}
