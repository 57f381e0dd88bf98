import { pause } from '../../../src/runtime/pause.ts'
import type { Random } from '../../../src/runtime/random.ts'
import { type Answer, type Api, wasDone } from './api.ts'
import type { Changes } from './changes.ts'
import { type NewJob, NewJobs } from './new-jobs.ts'

/** A one-off whose creation was answered. */
export interface Acknowledged {
  jobId: string
  atMostOnce: boolean
  key: { key: string; limit: number } | null
}

export interface Recurring {
  jobId: string
  atMostOnce: boolean
  stepMs: number
  startAt: number
  endAt: number
}

const CALLS_PER_SECOND = 14
const TICK_MS = 50
const MOST_PENDING = 100
const MOST_ONE_OFFS = 60_000
/** Recurring jobs go on for so long after the last change of one, so that no change meets a job that is over. */
const LAST_CHANGE_MS = 8_000

/** Creates jobs at a steady rate and lets `Changes` disturb them just before they are due. */
export class Load {
  readonly oneOffs = new Map<string, Acknowledged>()
  readonly recurring: Recurring[] = []
  readonly #api: Api
  readonly #random: Random
  readonly #jobs: NewJobs
  readonly #changes: Changes
  readonly #pending = new Set<Promise<unknown>>()

  constructor(api: Api, random: Random, changes: Changes, targetUrl: string) {
    this.#api = api
    this.#random = random
    this.#jobs = new NewJobs(random, targetUrl)
    this.#changes = changes
  }

  /** Before any fault: each of them must be there. */
  async createRecurring(startAt: number, endAt: number): Promise<void> {
    for (const { stepMs, definition } of this.#jobs.recurring(startAt, endAt)) {
      const answer = await this.#api.call('POST', '/v1/jobs', definition)
      if (!wasDone(answer)) throw new Error(`a recurring job was not created: ${JSON.stringify(answer)}`)
      const jobId = answer.body.jobId as string
      this.recurring.push({ jobId, stepMs, startAt, endAt, atMostOnce: definition.delivery === 'at_most_once' })
      this.#changes.addRecurring({ jobId, stepMs, definition, until: endAt - LAST_CHANGE_MS })
    }
  }

  async run(until: number, signal: AbortSignal): Promise<void> {
    const beganAt = Date.now()
    for (let asked = 0; Date.now() < until && !signal.aborted; ) {
      const wanted = ((Date.now() - beganAt) / 1_000) * CALLS_PER_SECOND
      for (; asked < wanted; asked++)
        if (this.#pending.size < MOST_PENDING && this.oneOffs.size < MOST_ONE_OFFS) this.#begin(this.#createSome())
      await pause(TICK_MS)
    }
    await Promise.all(this.#pending)
  }

  #begin(call: Promise<unknown>): void {
    const settled = call.finally(() => this.#pending.delete(settled))
    this.#pending.add(settled)
  }

  async #createSome(): Promise<void> {
    const kind = this.#random.float()
    if (kind < 0.06) return this.#createGraph()
    if (kind < 0.18) return this.#create(this.#jobs.debounced(Date.now()))
    return this.#create(this.#jobs.oneOff(Date.now()))
  }

  async #create({ definition, dueAt }: NewJob): Promise<void> {
    const answer = await this.#api.call('POST', '/v1/jobs', definition)
    this.#acknowledge(answer, definition)
    if (!wasDone(answer)) return
    if (dueAt > Date.now() && definition.unique === undefined)
      this.#changes.disturb({ jobId: answer.body.jobId as string, definition, dueAt }, (made) =>
        this.#acknowledge(made, definition),
      )
  }

  async #createGraph(): Promise<void> {
    const jobs = this.#jobs.graph()
    const answer = await this.#api.call('POST', '/v1/jobs/batch', { jobs })
    if (!wasDone(answer)) return
    for (const { jobId } of answer.body.jobs as { jobId: string }[])
      this.oneOffs.set(jobId, { jobId, atMostOnce: false, key: null })
  }

  #acknowledge(answer: Answer | null, definition: Record<string, unknown>): void {
    if (!wasDone(answer)) return
    const jobId = answer.body.jobId as string
    const key = (definition.concurrency as Acknowledged['key'] | undefined) ?? null
    this.oneOffs.set(jobId, { jobId, atMostOnce: definition.delivery === 'at_most_once', key })
  }
}
