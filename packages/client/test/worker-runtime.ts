import type { WorkerRuntime } from '../src/worker/worker-runtime.ts'

/** Time that moves only when told to, and chance that is none: for tests. */
export class ManualRuntime implements WorkerRuntime {
  #wallMs: number
  #monotonicMs = 0
  #ids = 0
  #timers: { at: number; wake: () => void }[] = []

  constructor({ wallMs }: { wallMs: number }) {
    this.#wallMs = wallMs
  }

  now(): number {
    return this.#wallMs
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  chance(): number {
    return 0.5
  }

  uniqueId(): string {
    return `id-${++this.#ids}`
  }

  timer(ms: number, wake: () => void): { cancel(): void } {
    const entry = { at: this.#monotonicMs + ms, wake }
    this.#timers.push(entry)
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== entry)
      },
    }
  }

  /** Both clocks go on, and whoever waits for it is woken. */
  advance(ms: number): void {
    this.#wallMs += ms
    this.#monotonicMs += ms
    const due = this.#timers.filter(({ at }) => at <= this.#monotonicMs)
    this.#timers = this.#timers.filter(({ at }) => at > this.#monotonicMs)
    for (const { wake } of due.sort((a, b) => a.at - b.at)) wake()
  }

  /** The machine is asleep: only the wall clock goes on. */
  sleepThrough(ms: number): void {
    this.#wallMs += ms
  }
}
