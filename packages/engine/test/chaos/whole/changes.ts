import { pause } from '../../../src/runtime/pause.ts'
import type { Random } from '../../../src/runtime/random.ts'
import { type Answer, type Api, wasDone } from './api.ts'

export interface Disturbed {
  jobId: string
  definition: Record<string, unknown>
  dueAt: number
}

interface Ticking {
  jobId: string
  stepMs: number
  definition: Record<string, unknown>
  /** No change of it begins later. */
  until: number
}

type Kind = 'labels' | 'move' | 'put' | 'pause' | 'trigger'

/** Nodes have read a timer by then, and a direct lease may be under way. */
const BEFORE_DUE_MS = { most: 2_000, least: -100 }
const RECURRING_EVERY_MS = 250
const MOST_PENDING = 500
const PAUSED_MS = 1_500
const RESUME_EVERY_MS = 400

/** Changes jobs within the two seconds before they are due. */
export class Changes {
  readonly counts: Record<Kind, { done: number; refused: number; unanswered: number }>
  /** Jobs that were asked to run beside their time: they may have more than one run. */
  readonly triggered = new Set<string>()
  readonly #api: Api
  readonly #random: Random
  readonly #pending = new Set<Promise<unknown>>()
  readonly #recurring: Ticking[] = []
  /** Jobs of which a pause was not answered: a node that was stopped may do it when it wakes up. */
  readonly #perhapsPaused = new Set<string>()
  #isOver = false

  constructor(api: Api, random: Random) {
    this.#api = api
    this.#random = random
    const none = () => ({ done: 0, refused: 0, unanswered: 0 })
    this.counts = { labels: none(), move: none(), put: none(), pause: none(), trigger: none() }
  }

  addRecurring(job: Ticking): void {
    this.#recurring.push(job)
  }

  /** Plans up to three changes of a one-off. `onMade` hears of a job that a change made instead. */
  disturb(job: Disturbed, onMade: (answer: Answer | null) => void): void {
    const count = Math.floor(this.#random.float() * 4)
    for (let i = 0; i < count && this.#pending.size < MOST_PENDING; i++) this.#begin(this.#disturbOnce(job, onMade))
  }

  /** Changes recurring jobs until `until`; ends when all that was begun has ended, and every paused job goes on. */
  async run(until: number, signal: AbortSignal): Promise<void> {
    while (Date.now() < until && !signal.aborted) {
      await pause(RECURRING_EVERY_MS)
      const job = this.#recurring[Math.floor(this.#random.float() * this.#recurring.length)]
      if (!job || Date.now() > job.until || this.#pending.size >= MOST_PENDING) continue
      const kind = this.#pick(['labels', 'labels', 'put', 'pause', 'trigger'] as const)
      const { jobId, definition, stepMs } = job
      const dueAt = Math.ceil(Date.now() / stepMs) * stepMs
      this.#begin(this.#change(kind, { jobId, definition, dueAt }, () => {}))
    }
    if (signal.aborted) this.#isOver = true
    await Promise.all(this.#pending)
  }

  /** Called once all processes are back: by then a pause that was not answered has been done or never will be. */
  async resumeAll(): Promise<void> {
    await Promise.all([...this.#perhapsPaused].map((jobId) => this.#resume(jobId)))
  }

  #begin(change: Promise<unknown>): void {
    const settled = change.finally(() => this.#pending.delete(settled))
    this.#pending.add(settled)
  }

  async #disturbOnce(job: Disturbed, onMade: (answer: Answer | null) => void): Promise<void> {
    const { most, least } = BEFORE_DUE_MS
    const at = job.dueAt - (least + this.#random.float() * (most - least))
    const kind = this.#pick(['labels', 'labels', 'move', 'put', 'pause', 'trigger'] as const)
    await pause(Math.max(0, at - Date.now()))
    if (kind === 'put' && job.definition.name === undefined) return
    await this.#change(kind, job, onMade)
  }

  async #change(kind: Kind, job: Disturbed, onMade: (answer: Answer | null) => void): Promise<void> {
    const { jobId, definition } = job
    const path = `/v1/jobs/${jobId}`
    const labels = { changed: String(Math.floor(this.#random.float() * 1_000_000)) }
    if (kind === 'labels') this.#count(kind, await this.#api.call('PATCH', path, { labels }, jobId))
    if (kind === 'move') this.#count(kind, await this.#api.call('PATCH', path, { runAt: this.#nearby(job) }, jobId))
    if (kind === 'trigger') {
      this.triggered.add(jobId)
      this.#count(kind, await this.#api.call('POST', `${path}/trigger`, {}, jobId))
    }
    if (kind === 'put') {
      const { name, ...rest } = definition
      const answer = await this.#api.call('PUT', `/v1/jobs/by-name/${name}`, { ...rest, labels }, jobId)
      this.#count(kind, answer)
      onMade(answer)
    }
    if (kind === 'pause') {
      const answer = await this.#api.call('POST', `${path}/pause`, {}, jobId)
      this.#count(kind, answer)
      if (answer === null) this.#perhapsPaused.add(jobId)
      if (answer === null || wasDone(answer)) await this.#resume(jobId)
    }
  }

  /** A paused job is never left behind: it is asked to go on until a node has answered. */
  async #resume(jobId: string): Promise<void> {
    await pause(this.#random.float() * PAUSED_MS)
    while (!this.#isOver) {
      const answer = await this.#api.call('POST', `/v1/jobs/${jobId}/resume`, {}, jobId)
      if (answer !== null && ![429, 503].includes(answer.status)) return
      await pause(RESUME_EVERY_MS)
    }
  }

  /** A little later than its time, or a little sooner. */
  #nearby({ dueAt }: Disturbed): string {
    const at = dueAt + (this.#random.float() - 0.3) * 3_000
    return new Date(Math.max(at, Date.now())).toISOString()
  }

  #count(kind: Kind, answer: Answer | null): void {
    if (answer === null) this.counts[kind].unanswered++
    else if (wasDone(answer)) this.counts[kind].done++
    else this.counts[kind].refused++
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random.float() * items.length)] as Item
  }
}
