import type { ResolvedSpec } from '../job/definition.ts'
import { compileSchedule } from './compile-schedule.ts'
import { RememberedSchedule } from './remembered-schedule.ts'
import type { Schedule } from './schedule.ts'

export interface FireTimesOptions {
  /** How many schedules are kept; each takes a few KB. Default 10,000. */
  maxSchedules?: number
}

/**
 * The compiled schedules of a process, by id, with the fire times they were asked for. An id is a hash of the schedule's
 * text, so what it stands for never changes and nothing needs to be invalidated.
 *
 * The schedules not used for longest go first, half of them at a time: when the recent half is full it becomes the older
 * one, and whatever is asked for again moves back. Ordering every single use would cost more than the answer.
 */
export class FireTimes {
  readonly #half: number
  #recent = new Map<string, Schedule>()
  #older = new Map<string, Schedule>()

  constructor(options: FireTimesOptions = {}) {
    this.#half = Math.max(1, Math.floor((options.maxSchedules ?? 10_000) / 2))
  }

  get(id: string, load: () => ResolvedSpec): Schedule {
    const recent = this.#recent.get(id)
    if (recent !== undefined) return recent
    const schedule = this.#older.get(id) ?? new RememberedSchedule(compileSchedule(load()))
    this.#older.delete(id)
    if (this.#recent.size >= this.#half) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(id, schedule)
    return schedule
  }
}
