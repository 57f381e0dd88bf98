import type { Bounds, Clauses } from './clauses.ts'
import type { Today } from './today.ts'
import type { Words } from './words.ts'

const NOUNS: Record<keyof Clauses, string> = {
  now: 'when',
  frequency: 'how often',
  offset: 'how long from now',
  dates: 'the day',
  weekdays: 'the weekdays',
  monthDays: 'the days of the month',
  scope: 'of which month',
  months: 'the months',
  times: 'the time of day',
  part: 'the part of the day',
  minutes: 'the minute',
  window: 'from when to when',
}

/** A text half read: its words, and what they said so far. */
export class Reading {
  readonly words: Words
  readonly today: Today
  readonly bounds: Bounds = {}
  /** What holds each for itself, as in `every monday at 9; every friday at 15:00`. */
  readonly groups: Clauses[] = [{}]

  constructor(words: Words, today: Today) {
    this.words = words
    this.today = today
  }

  get clauses(): Clauses {
    return this.groups.at(-1) as Clauses
  }

  beginGroup(): void {
    this.groups.push({})
  }

  put<Key extends keyof Clauses>(key: Key, clause: NonNullable<Clauses[Key]>): void {
    if (this.clauses[key] !== undefined) {
      throw this.words.refuse(clause.token, `says ${NOUNS[key]} a second time; a ";" would begin anew`)
    }
    this.clauses[key] = clause
  }

  putAll(clauses: Partial<Clauses>): void {
    for (const key of Object.keys(clauses) as (keyof Clauses)[]) {
      const clause = clauses[key]
      if (clause !== undefined) this.put(key, clause as never)
    }
  }
}

/** Reads a clause if one of its kind begins here, and says whether. */
export type ClauseReader = (reading: Reading) => boolean
