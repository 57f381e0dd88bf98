import type { Instant } from '../../runtime/clock.ts'
import { notUnderstood, shown } from '../not-understood.ts'

/** What an English time means. Of `cron` and `every` exactly one is set. */
export type UnderstoodText =
  | { kind: 'once'; at: Instant }
  | {
      kind: 'recurring'
      /** Canonical; fires whenever one of them does. */
      cron: string[] | null
      /** ISO 8601, canonical. `startAt` is then set: the first fire time, from which all others are counted. */
      every: string | null
      startAt?: Instant
      endAt?: Instant
      maxRuns?: number
    }

/** Reads an English time, as seen from a moment in a zone. Throws `invalid_argument` that names the word. */
export function readWhen(text: unknown, at: { now: Instant; timezone: string }): UnderstoodText {
  throw notUnderstood(`${shown(text)} is not a time that is understood in ${at.timezone}`)
}
