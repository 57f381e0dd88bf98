import type { JobInput } from '../../src/intake/job-input.ts'
import type { Instant } from '../../src/runtime/clock.ts'
import type { Expected, Verdict } from './auditor.ts'
import type { Rhythm } from './mixed-jobs.ts'

const FRESH_MS = 60_000

/** Nobody promoted after `from` and before `to`. */
export interface Outage {
  from: Instant
  to: Instant
}

interface Chapter {
  from: Instant
  rhythm: Rhythm
  state: 'active' | 'paused' | 'caught up'
}

interface CatchUp {
  policy: 'latest' | 'all' | 'none'
  windowMs: number
  max: number
}

/** What was done to one job, and so what ought to have become of each of its nominal times. */
export class Life {
  readonly jobId: string
  readonly says: JobInput
  readonly #catchUp: CatchUp | null
  readonly #chapters: Chapter[]

  /** Without `catchUp`, what an outage delays may run or be skipped. */
  constructor(jobId: string, says: JobInput, first: { from: Instant; rhythm: Rhythm; catchUp: CatchUp | null }) {
    this.jobId = jobId
    this.says = says
    this.#catchUp = first.catchUp
    this.#chapters = [{ from: first.from, rhythm: first.rhythm, state: 'active' }]
  }

  get isPaused(): boolean {
    return this.#last.state === 'paused'
  }

  follow(at: Instant, rhythm: Rhythm): void {
    this.#chapters.push({ from: at, rhythm, state: this.#last.state })
  }

  pause(at: Instant): void {
    this.#chapters.push({ from: at, rhythm: this.#last.rhythm, state: 'paused' })
  }

  resume(at: Instant, missed: 'skip' | 'catch_up'): void {
    if (missed === 'catch_up') this.#last.state = 'caught up'
    this.#chapters.push({ from: at, rhythm: this.#last.rhythm, state: 'active' })
  }

  expected(until: Instant, outages: readonly Outage[]): Expected {
    const times = new Map<Instant, Verdict>()
    for (const [index, { from, rhythm, state }] of this.#chapters.entries()) {
      const to = this.#chapters[index + 1]?.from ?? until
      const list = rhythm.times(from, to)
      for (const at of list) times.set(at, state === 'active' ? 'run' : state === 'paused' ? 'skip' : 'either')
      if (state !== 'active') continue
      for (const outage of outages) for (const [at, verdict] of this.#afterOutage(list, outage)) times.set(at, verdict)
    }
    return { jobId: this.jobId, says: this.says, times }
  }

  /** The rule of catch-up, told once more: what is less than a minute late runs, and the policy says what else does. */
  #afterOutage(list: readonly Instant[], { from, to }: Outage): [Instant, Verdict][] {
    // Jitter lets a time that came just before the outage be due in it.
    if (this.#catchUp === null) return list.filter((at) => at > from - FRESH_MS && at <= to).map((at) => [at, 'either'])
    const inside = list.filter((at) => at > from && at <= to)
    const { policy, windowMs, max } = this.#catchUp
    const late = inside.filter((at) => to - at >= FRESH_MS)
    const recent = late.filter((at) => at >= to - windowMs)
    const kept = policy === 'all' ? recent.slice(-max) : recent.slice(-1)
    const isKept = (at: Instant) =>
      policy !== 'none' && kept.includes(at) && (policy === 'all' || late.length === inside.length)
    return late.map((at) => [at, isKept(at) ? 'run' : 'skip'])
  }

  get #last(): Chapter {
    return this.#chapters.at(-1) as Chapter
  }
}
