import type { Random } from '../../../src/runtime/random.ts'
import { QUEUES } from './fleet.ts'

/** Faults must not use up the attempts of a run, and a retry must not outlast the end. */
const retry = { maxAttempts: 40, backoff: { type: 'fixed', initial: '300ms' } }
/** Also how long the lease of an HTTP call lasts at most: the command line has no setting for it. */
const HTTP_TIMEOUT = '5s'
const KEYS = 4
const DEBOUNCED = 6

export interface NewJob {
  definition: Record<string, unknown>
  dueAt: number
}

/** Makes jobs of all kinds by chance. */
export class NewJobs {
  readonly #random: Random
  readonly #targetUrl: string
  #names = 0

  constructor(random: Random, targetUrl: string) {
    this.#random = random
    this.#targetUrl = targetUrl
  }

  /** One that is due now or within seconds; some have a name, a key, or are performed at most once. */
  oneOff(now: number): NewJob {
    const isDelayed = this.#happens(0.6)
    // Many fall due in the same moment, as they would at a full second.
    const later = Math.ceil((now + this.#between(1_500, 8_000)) / 500) * 500
    return {
      dueAt: isDelayed ? later : now,
      definition: {
        ...this.#work(),
        ...(isDelayed ? { runAt: new Date(later).toISOString() } : {}),
        ...(isDelayed && this.#happens(0.5) ? { name: `once-${++this.#names}` } : {}),
        ...(this.#happens(0.2) ? { concurrency: this.#concurrency() } : {}),
        ...(this.#happens(0.12) ? this.#once() : {}),
      },
    }
  }

  /** Put off again and again: the job that waits under the key becomes this one. */
  debounced(now: number): NewJob {
    const key = `debounce-${Math.floor(this.#between(0, DEBOUNCED))}`
    const dueAt = now + Math.round(this.#between(300, 2_500))
    const unique = { key, while: 'queued', onConflict: 'replace' }
    return { dueAt, definition: { ...this.#work(), runAt: new Date(dueAt).toISOString(), unique } }
  }

  /** A diamond: one, two that wait for it, and one that waits for both. */
  graph(): Record<string, unknown>[] {
    const after = (...jobs: string[]) => ({ after: { jobs } })
    return [
      { ...this.#work(), ref: 'first' },
      { ...this.#work(), ref: 'left', ...after('first') },
      { ...this.#work(), ref: 'right', ...after('first') },
      { ...this.#work(), ref: 'last', ...after('left', 'right') },
    ]
  }

  /** Every second, two or three, from `startAt` to `endAt`, over all targets and policies. */
  recurring(startAt: number, endAt: number): { stepMs: number; definition: Record<string, unknown> }[] {
    const bounds = { startAt: new Date(startAt).toISOString(), endAt: new Date(endAt).toISOString() }
    return Array.from({ length: 12 }, (_, i) => {
      const seconds = 1 + (i % 3)
      const rule = i % 2 === 0 ? { every: `${seconds}s` } : { cron: `*/${seconds} * * * * *` }
      const overlap = ['allow', 'skip', 'buffer_all', 'buffer_one'][Math.floor(i / 3)]
      const once = i % 5 === 4 ? this.#once() : {}
      const work = this.#work(['http', 'library', 'worker'][i % 3])
      return {
        stepMs: seconds * 1_000,
        definition: { ...work, ...rule, ...bounds, ...once, overlap, name: `tick-${i}` },
      }
    })
  }

  #work(on = ['http', 'library', 'worker'][Math.floor(this.#between(0, 3))]): Record<string, unknown> {
    const isSlow = this.#happens(0.15)
    const ms = Math.round(isSlow ? this.#between(300, 900) : this.#between(0, 60))
    const payload = { ms, failsOnce: this.#happens(0.03) }
    if (on === 'http') return { http: { url: this.#targetUrl }, payload, retry, timeout: HTTP_TIMEOUT }
    return { queue: on === 'library' ? QUEUES.library : QUEUES.worker, payload, retry }
  }

  /** A failure that is known may be repeated under `at_most_once` too. Such jobs never fail, so a second begin is a double. */
  #once(): Record<string, unknown> {
    return { delivery: 'at_most_once', payload: { ms: Math.round(this.#between(0, 300)) } }
  }

  #concurrency(): { key: string; limit: number } {
    const limit = this.#happens(0.5) ? 1 : 3
    return { key: `of-${limit}-${Math.floor(this.#between(0, KEYS))}`, limit }
  }

  #between(low: number, high: number): number {
    return low + this.#random.float() * (high - low)
  }

  #happens(probability: number): boolean {
    return this.#random.float() < probability
  }
}
